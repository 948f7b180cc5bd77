#include "cuda/driver.hpp"

#include <pthread.h>

#include <mutex>
#include <new>

#include "cuda/fork_generation.hpp"
#include "cuda/loader.hpp"

namespace ferry::cuda {
namespace {

// Held while a library is opened or a driver initialised. Not across forks: the driver's own fork handlers may wait for
// what cuInit holds. A child starts with a new one instead, since its holder may be a thread of the parent.
std::mutex opening;
[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, [] { new (&opening) std::mutex; });

// What the process's first call found; never freed, since threads may use it while the process ends.
std::atomic<const OpenedDriver*> found{nullptr};

const OpenedDriver& process_driver() {
  const OpenedDriver* known = found.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto opened = std::make_unique<const OpenedDriver>(Driver::open());
  if (found.compare_exchange_strong(known, opened.get(), std::memory_order_acq_rel)) known = opened.release();
  return *known;
}

std::string words(const Functions& functions, CUresult code) {
  const char* text = nullptr;
  return functions.cuGetErrorString(code, &text) == success && text != nullptr ? text : "";
}

}  // namespace

OpenedDriver Driver::open() {
  const std::string override = library_override();
  return open(override.empty() ? "libcuda.so.1" : override);
}

OpenedDriver Driver::open(const std::string& library) {
  const std::lock_guard lock(opening);
  LoadedLibrary loaded = load_library(library);
  if (loaded.problem) return {nullptr, std::move(loaded.problem)};
  return {std::unique_ptr<Driver>(new Driver(library, loaded.version, loaded.functions)), std::nullopt};
}

std::optional<DriverProblem> Driver::initialise() {
  const std::uint32_t generation = fork_generation();
  if (initialised_in_.load(std::memory_order_acquire) == generation) return std::nullopt;
  const std::lock_guard lock(opening);
  if (initialised_in_.load(std::memory_order_relaxed) == generation) return std::nullopt;
  if (begun_in_ != 0 && begun_in_ != generation) return forked();
  begun_in_ = generation;
  int count = 0;
  CUresult code = functions_.cuInit(0);
  if (code == success) code = functions_.cuDeviceGetCount(&count);
  if (code == success && count > 0) {
    initialised_in_.store(generation, std::memory_order_release);
    return std::nullopt;
  }
  begun_in_ = 0;
  return code == success ? shows_no_device(library_) : failed_to_initialise(library_, code, words(functions_, code));
}

const Functions& Driver::functions() const {
  const Functions* usable = functions_if_usable();
  if (usable != nullptr) return *usable;
  if (initialised_in_.load(std::memory_order_relaxed) != 0) throw forked().error();
  throw Error(ErrorKind::device, "a function of the driver", "the driver is not initialised", "initialise it first");
}

const Functions* Driver::functions_if_usable() const noexcept {
  return initialised_in_.load(std::memory_order_acquire) == fork_generation() ? &functions_ : nullptr;
}

DriverInUse Driver::in_use() const {
  if (const Functions* usable = functions_if_usable()) return {usable};
  {
    const std::lock_guard lock(opening);
    if (begun_in_ != 0 && begun_in_ != fork_generation()) return {nullptr, forked()};
  }
  CUcontext current = nullptr;
  const CUresult code = functions_.cuCtxGetCurrent(&current);
  if (code == success) return {&functions_};
  if (code == result::not_initialized) return {};
  return {nullptr, failed_to_initialise(library_, code, words(functions_, code))};
}

const Driver& driver() {
  const OpenedDriver& opened = process_driver();
  if (opened.problem) throw opened.problem->error();
  if (const auto problem = opened.driver->initialise()) throw problem->error();
  return *opened.driver;
}

DriverInUse driver_in_use() {
  const OpenedDriver& opened = process_driver();
  if (opened.problem) return {nullptr, opened.problem};
  return opened.driver->in_use();
}

std::optional<DriverProblem> opening_problem() { return process_driver().problem; }

int opened_driver_version() {
  const OpenedDriver& opened = process_driver();
  return opened.problem ? 0 : opened.driver->version();
}

std::string driver_status() {
  const OpenedDriver& opened = process_driver();
  if (opened.problem) return "not usable: " + opened.problem->given + ": " + opened.problem->why;
  return "CUDA " + cuda_version_text(opened.driver->version()) + " (" + opened.driver->library() + ")";
}

}  // namespace ferry::cuda
