// Time for measuring, and what to make of times.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace ferry {

using Clock = std::chrono::steady_clock;

// Time for measuring, given out in steps, so that others have their turn between them.
class MeasuringTime {
 public:
  static constexpr std::chrono::milliseconds all{200};
  static constexpr std::chrono::milliseconds one_step{10};

  explicit MeasuringTime(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)), begun_(now_()) {}

  // Is there time for one more whole step, should its attempts take as long as the longest so far?
  [[nodiscard]] bool has_step() const {
    return now_() - begun_ + std::max<Clock::duration>(one_step, 2 * longest_) <= all;
  }

  // Makes attempts until the step is over, at least two; their times in seconds, the first attempt's not among them: it
  // is for warming up. Where attempts are slow, two are what a step takes.
  [[nodiscard]] std::vector<double> step(const std::function<void()>& attempt);

  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(now_() - begun_).count(); }

 private:
  std::function<Clock::time_point()> now_;
  Clock::time_point begun_;
  Clock::duration longest_{};
};

// The value in the middle; 0 of none.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace ferry
