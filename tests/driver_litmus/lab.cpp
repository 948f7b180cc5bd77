#include "lab.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace ferry::litmus {
namespace {

constexpr int most_copies = 400;  // a driver's queue holds about a thousand; a full one would block the host

template <class Signature>
Signature* control(const Library& library, const char* name) {
  return reinterpret_cast<Signature*>(library.exported(name));
}

// What the fake driver counts and a question must give back.
constexpr std::array counted{"events",       "streams",         "host_registrations",
                             "device_bytes", "pushed_contexts", "primary_contexts"};

}  // namespace

Lab::Lab(const LabOptions& options) : library_(options.library) {
  if (is_fake()) {
    for (const std::string& preset : options.presets) {
      if (control<int(const char*)>(library_, "fake_preset")(preset.c_str()) == 0)
        throw std::runtime_error("the fake driver has no preset " + preset);
    }
    const std::string schedule = options.schedule.empty() ? "lazy" : options.schedule;
    if (control<int(const char*, std::uint64_t)>(library_, "fake_schedule")(schedule.c_str(), 1) == 0)
      throw std::runtime_error("the fake driver has no schedule " + schedule);
  } else if (!options.presets.empty() || !options.schedule.empty()) {
    throw std::runtime_error("presets and schedules are the fake driver's, and this is none");
  }
  if (!library_.missing().empty()) throw std::runtime_error("the driver has no " + library_.missing().front());
  initialise();
  prepare_long_work(is_fake() ? std::min(options.long_work_ms, 1.0) : options.long_work_ms);
  settle();
  baseline_ = counts();
}

void Lab::initialise() {
  const Driver& d = driver();
  first_.version_before_init = d.cuDriverGetVersion(&version_);
  first_.count_before_init = d.cuDeviceGetCount(&device_count_);
  const char* name = nullptr;
  first_.error_name_before_init = d.cuGetErrorName(700, &name) == cuda::success && name != nullptr ? name : "none";
  cuda::CUresult code = d.cuInit(0);
  if (code == cuda::success) code = d.cuDeviceGetCount(&device_count_);
  if (code == cuda::success && device_count_ > 0) code = d.cuDeviceGet(&device_, 0);
  if (code != cuda::success || device_count_ == 0)
    throw std::runtime_error(code != cuda::success ? "cuInit: " + say(code) : "the driver shows no device");
  cuda::CUcontext current = nullptr;
  first_.context_current_after_init = d.cuCtxGetCurrent(&current) != cuda::success || current != nullptr;
  unsigned flags = 0;
  int active = 1;
  first_.primary_active_after_init =
      d.cuDevicePrimaryCtxGetState(device_, &flags, &active) != cuda::success || active != 0;
  first_.release_of_unretained = d.cuDevicePrimaryCtxRelease(device_);
  must(d.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  must(d.cuCtxPushCurrent(context_), "cuCtxPushCurrent");
}

Lab::~Lab() {
  const Driver& d = driver();
  if (context_ == nullptr) return;  // gone, and the process ends
  if (long_buffer_ != 0) d.cuMemFree(long_buffer_);
  cuda::CUcontext popped = nullptr;
  d.cuCtxPopCurrent(&popped);
  d.cuDevicePrimaryCtxRelease(device_);
}

void Lab::prepare_long_work(double ms) {
  using Clock = std::chrono::steady_clock;
  need(driver().cuMemAlloc, "cuMemAlloc");
  need(driver().cuCtxSynchronize, "cuCtxSynchronize");
  for (long_nbytes_ = is_fake() ? std::size_t{1} << 18 : std::size_t{1} << 29;; long_nbytes_ /= 2) {
    const cuda::CUresult code = driver().cuMemAlloc(&long_buffer_, long_nbytes_);
    if (code == cuda::success) break;
    if (long_nbytes_ <= std::size_t{1} << 16) must(code, "cuMemAlloc");
  }
  const auto legacy = reinterpret_cast<cuda::CUstream>(1);
  work_long(legacy);  // whatever the driver sets up at the first use
  settle();
  long_count_ = 8;
  const auto start = Clock::now();
  work_long(legacy);
  settle();
  const double took = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  long_count_ = static_cast<int>(std::clamp(8 * ms / std::max(took, 1e-3), 2.0, double{most_copies}));
}

void Lab::work_long(cuda::CUstream stream) {
  const std::size_t half = long_nbytes_ / 2;
  for (int i = 0; i < long_count_; ++i) {
    const cuda::CUdeviceptr to = long_buffer_ + (i % 2 == 0 ? half : 0);
    const cuda::CUdeviceptr from = long_buffer_ + (i % 2 == 0 ? 0 : half);
    must(driver().cuMemcpyDtoDAsync(to, from, half, stream), "cuMemcpyDtoDAsync");
  }
}

void Lab::settle() const { driver().cuCtxSynchronize(); }

std::string Lab::in_another_thread(const std::function<std::string()>& run) const {
  std::string answer;
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      must(driver().cuCtxPushCurrent(context_), "cuCtxPushCurrent");
      try {
        answer = run();
      } catch (...) {
        thrown = std::current_exception();
      }
      cuda::CUcontext popped = nullptr;
      driver().cuCtxPopCurrent(&popped);
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
  return answer;
}

std::vector<long> Lab::counts() const {
  std::vector<long> all;
  const auto live = control<std::int64_t(const char*)>(library_, "fake_live");
  if (live == nullptr) return all;
  for (const char* what : counted) all.push_back(static_cast<long>(live(what)));
  return all;
}

std::string Lab::left_behind() {
  if (context_ == nullptr) return "";
  settle();
  cuda::CUcontext popped = nullptr, below = nullptr;
  driver().cuCtxPopCurrent(&popped);
  driver().cuCtxGetCurrent(&below);
  must(driver().cuCtxPushCurrent(context_), "cuCtxPushCurrent");
  if (popped != context_ || below != nullptr) return "contexts";
  const std::vector<long> before = std::exchange(baseline_, counts());  // the next question is not to blame
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (baseline_[i] != before[i]) return std::to_string(baseline_[i] - before[i]) + " " + counted[i];
  }
  return "";
}

void Lab::must(cuda::CUresult code, const char* what) const {
  if (code != cuda::success) throw Unprepared(std::string(what) + ": " + say(code));
}

std::string Lab::description() const {
  std::string text = "CUDA " + std::to_string(version_ / 1000) + "." + std::to_string(version_ % 1000 / 10);
  std::array<char, 100> name{};
  if (driver().cuDeviceGetName != nullptr && driver().cuDeviceGetName(name.data(), 100, device_) == cuda::success)
    text += std::string(", ") + name.data();
  text += ", devices: " + std::to_string(device_count_);
  return is_fake() ? text + " (the fake driver)" : text;
}

}  // namespace ferry::litmus
