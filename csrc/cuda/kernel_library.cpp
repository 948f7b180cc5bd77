#include "cuda/kernel_library.hpp"

#include <algorithm>
#include <utility>

#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"
#include "cuda/stream.hpp"

namespace ferry::cuda {
namespace {

constexpr CUresult invalid_handle = 400;
constexpr int local_nbytes_attribute = 3;
constexpr int multiprocessor_attribute = 16;

// Answers that stay the same however often one asks. Others come from earlier work, a shortage, or a capture.
bool is_final(CUresult code) noexcept {
  return !is_sticky(code) && code != result::out_of_memory && code != result::deinitialized &&
         code != result::invalid_context && code != result::context_is_destroyed &&
         !(code >= result::stream_capture_unsupported && code <= result::stream_capture_wrong_thread);
}

bool is_capturing(const Functions& functions, CUstream stream) {
  return capture_state(functions, stream) != CaptureState::none;
}

}  // namespace

KernelLibrary::~KernelLibrary() {
  const Functions* functions = driver_.functions_if_usable();
  if (library_ == nullptr || functions == nullptr) return;
  const RelaxedCapture relaxed(*functions, std::nothrow);
  if (relaxed.relaxed()) report_cleanup(functions->cuLibraryUnload(library_), "cuLibraryUnload");
}

const KernelLibrary::Entry* KernelLibrary::entry_of(const ContextIdentity& context) const noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const std::unique_ptr<Entry>& entry) { return entry->context == context; });
  return found == entries_.end() ? nullptr : found->get();
}

KernelStatus KernelLibrary::status(const ContextIdentity& context) const {
  const std::lock_guard lock(mutex_);
  const Entry* entry = entry_of(context);
  if (entry != nullptr) return entry->status;
  return library_status_.value_or(KernelStatus{KernelState::not_loaded_yet, success, "nobody has asked for them yet"});
}

const Kernels* KernelLibrary::find_or_load(const ContextScope& scope, std::optional<CUstream> stream) {
  {
    const std::lock_guard lock(mutex_);
    const Entry* entry = entry_of(scope.context());
    if (entry != nullptr && entry->status.state != KernelState::not_loaded_yet) return entry->kernels.get();
  }
  // Not under the lock: the driver may wait for the device.
  Loaded loaded;
  try {
    loaded = load(scope, stream);
  } catch (const Error& error) {
    loaded = {nullptr, {KernelState::not_loaded_yet, success, error.why()}};
  }
  return remember(scope, std::move(loaded));
}

const Kernels* KernelLibrary::remember(const ContextScope& scope, Loaded loaded) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const std::unique_ptr<Entry>& entry) {
    return entry->context == scope.context();
  });
  if (known == entries_.end()) {
    entries_.push_back(
        std::make_unique<Entry>(Entry{scope.context(), std::move(loaded.kernels), std::move(loaded.status)}));
    return entries_.back()->kernels.get();
  }
  Entry& entry = **known;
  if (entry.kernels == nullptr) {  // else another thread was faster
    entry.kernels = std::move(loaded.kernels);
    entry.status = std::move(loaded.status);
  }
  return entry.kernels.get();
}

KernelLibrary::Loaded KernelLibrary::load(const ContextScope& scope, std::optional<CUstream> stream) {
  const Functions& functions = driver_.functions();
  if (is_capturing(functions, legacy_stream()) || (stream && is_capturing(functions, *stream))) {
    return {nullptr, {KernelState::not_loaded_yet, success, "a graph capture was going on when they were asked for"}};
  }
  const RelaxedCapture relaxed(functions);
  CUlibrary library = nullptr;
  KernelStatus status = library_for(library);
  if (status.state != KernelState::ready) return {nullptr, std::move(status)};
  Loaded loaded = resolve(scope, library);
  if (loaded.status.code != invalid_handle) return loaded;
  // The driver has begun anew, and knows nothing of what it loaded before.
  forget(library);
  status = library_for(library);
  if (status.state != KernelState::ready) return {nullptr, std::move(status)};
  return resolve(scope, library);
}

void KernelLibrary::forget(CUlibrary library) noexcept {
  const std::lock_guard lock(mutex_);
  if (library_ != library) return;  // another thread did
  library_ = nullptr;
  library_status_.reset();
}

KernelStatus KernelLibrary::library_for(CUlibrary& library) {
  const Functions& functions = driver_.functions();
  {
    const std::lock_guard lock(mutex_);
    if (library_status_) {
      library = library_;
      return *library_status_;
    }
  }
  KernelStatus status{KernelState::ready};
  KernelImage image = kernel_image();
  if (!image.problem.empty()) {
    status = {KernelState::unreadable, success, "TENSORFERRY_KERNEL_IMAGE=" + image.source + ": " + image.problem};
  } else if (image.data == nullptr) {
    status = {KernelState::not_built, success, std::string(kernel_build().missing)};
  } else if (!functions.have_kernels()) {
    status = {KernelState::old_driver, success, "the driver has no functions to load them with"};
  } else {
    const CUresult code = functions.cuLibraryLoadData(&library, image.data, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (code != success) {
      library = nullptr;
      status = failed(code, "cuLibraryLoadData", image.source);
      if (status.state == KernelState::not_loaded_yet) return status;
    }
  }
  const CUlibrary mine = library;
  {
    const std::lock_guard lock(mutex_);
    if (!library_status_) {
      library_status_ = status;
      library_ = library;
      image_ = std::move(image);
      return status;
    }
    library = library_;
    status = *library_status_;
  }
  if (mine != nullptr) report_cleanup(functions.cuLibraryUnload(mine), "cuLibraryUnload");  // another was faster
  return status;
}

KernelLibrary::Loaded KernelLibrary::resolve(const ContextScope& scope, CUlibrary library) const {
  const Functions& functions = driver_.functions();
  std::array<CUfunction, gpu::kernel_count> entries{};
  for (std::size_t i = 0; i < gpu::kernel_count; ++i) {
    const char* symbol = gpu::kernel_table[i].symbol;
    CUkernel kernel = nullptr;
    CUresult code = functions.cuLibraryGetKernel(&kernel, library, symbol);
    if (code != success) return {nullptr, failed(code, "cuLibraryGetKernel", symbol)};
    code = functions.cuKernelGetFunction(&entries[i], kernel);
    if (code != success) return {nullptr, failed(code, "cuKernelGetFunction", symbol)};
    // Where the driver loads lazily, code comes with the first question about it.
    int local_nbytes = 0;
    code = functions.cuFuncGetAttribute(&local_nbytes, local_nbytes_attribute, entries[i]);
    if (code != success) return {nullptr, failed(code, "cuFuncGetAttribute", symbol)};
  }
  int multiprocessors = 1;
  const CUresult code = functions.cuDeviceGetAttribute(&multiprocessors, multiprocessor_attribute, scope.device());
  if (code != success) return {nullptr, failed(code, "cuDeviceGetAttribute", "the number of multiprocessors")};
  return {std::make_unique<const Kernels>(functions, scope.context(), entries, multiprocessors),
          {KernelState::ready, success, {}}};
}

KernelStatus KernelLibrary::failed(CUresult code, const char* call, const std::string& about) const {
  const Error error = driver_error(driver_.functions(), code, call);
  std::string why = std::string(call) + " (" + about + "): " + error.why();
  if (!is_final(code)) return {KernelState::not_loaded_yet, code, std::move(why)};
  const KernelBuild build = kernel_build();
  if (build.embedded && driver_.version() < build.driver_version) {
    why += "; the kernels were built by toolkit " + std::string(build.toolkit) + " and need " +
           needed_driver_text(build.driver_version) + ", while this driver is one of CUDA " +
           cuda_version_text(driver_.version());
  }
  return {KernelState::refused, code, std::move(why)};
}

}  // namespace ferry::cuda
