#include "transfer/event_wait.hpp"

#include <chrono>

#include "core/mutation.hpp"
#include "cuda/driver_error.hpp"

namespace ferry {
namespace {

constexpr std::chrono::microseconds spin_time{10};  // what a sleep and a wake-up cost, about

}  // namespace

bool is_done(const cuda::Functions& functions, const cuda::Event& event) {
  const cuda::CUresult code = event.query();
  if (code == cuda::result::not_ready) return false;
  cuda::check(functions, code, "cuEventQuery");
  return true;
}

void wait_for(const cuda::Functions& functions, const cuda::Event& event) {
  if (mutated(Mutation::skip_host_wait)) return;
  const auto until = std::chrono::steady_clock::now() + spin_time;
  do {
    if (is_done(functions, event)) return;
  } while (std::chrono::steady_clock::now() < until);
  event.wait();
}

}  // namespace ferry
