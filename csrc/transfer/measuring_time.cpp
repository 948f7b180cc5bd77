#include "transfer/measuring_time.hpp"

#include <algorithm>

namespace ferry {

std::vector<double> MeasuringTime::step(const std::function<void()>& attempt) {
  std::vector<double> seconds;
  const Clock::time_point begun = now_();
  attempt();
  longest_ = std::max(longest_, now_() - begun);
  for (Clock::time_point before = now_(); seconds.empty() || before - begun < one_step;) {
    attempt();
    const Clock::time_point after = now_();
    longest_ = std::max(longest_, after - before);
    seconds.push_back(std::chrono::duration<double>(after - before).count());
    before = after;
  }
  return seconds;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace ferry
