#include "transfer/event_wait.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/mutation.hpp"
#include "cuda/driver_error.hpp"
#include "transfer/interruption.hpp"

namespace ferry {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds spin_time{10};  // what a sleep and a wake-up cost, about
// The driver has no wait that a signal ends. Pauses that grow with the time waited add a few per cent to it at most.
constexpr Clock::duration shortest_pause = std::chrono::microseconds(5);
constexpr Clock::duration longest_pause = std::chrono::milliseconds(1);
constexpr int waited_per_pause = 32;

// Sleeps of this thread end when they should, and not up to 50 us later.
class ExactSleeps {
 public:
  ExactSleeps() noexcept : slack_ns_(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    if (slack_ns_ > 0) ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }
  ExactSleeps(const ExactSleeps&) = delete;
  ExactSleeps& operator=(const ExactSleeps&) = delete;
  ~ExactSleeps() {
    if (slack_ns_ > 0) ::prctl(PR_SET_TIMERSLACK, slack_ns_, 0, 0, 0);
  }

 private:
  int slack_ns_;
};

void wait_interruptibly(const cuda::Functions& functions, const cuda::Event& event, Clock::time_point begun) {
  const ExactSleeps exact;
  auto question = begun + InterruptibleWaits::between_questions;
  while (!is_done(functions, event)) {
    const auto now = Clock::now();
    if (now >= question) {
      end_if_interrupted();
      question = now + InterruptibleWaits::between_questions;
    }
    std::this_thread::sleep_for(std::clamp((now - begun) / waited_per_pause, shortest_pause, longest_pause));
  }
}

}  // namespace

bool is_done(const cuda::Functions& functions, const cuda::Event& event) {
  const cuda::CUresult code = event.query();
  if (code == cuda::result::not_ready) return false;
  cuda::check(functions, code, "cuEventQuery");
  return true;
}

void wait_for(const cuda::Functions& functions, const cuda::Event& event) {
  if (mutated(Mutation::skip_host_wait)) return;
  const auto begun = Clock::now();
  do {
    if (is_done(functions, event)) return;
  } while (Clock::now() < begun + spin_time);
  if (InterruptibleWaits::current() != nullptr) {
    wait_interruptibly(functions, event, begun);
  } else {
    event.wait();
  }
}

}  // namespace ferry
