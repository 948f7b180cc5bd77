#include "cuda/loader.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "cuda/driver.hpp"

namespace ferry::cuda {
namespace {

using GetProcAddressV2 = CUresult (*)(const char*, void**, int, std::uint64_t, int*);
using GetProcAddress = CUresult (*)(const char*, void**, int, std::uint64_t);  // before 12.0

template <class Function>
Function exported(void* library, const char* name) noexcept {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

// Asks for functions one by one, and remembers the first answer that means a wrong installation.
class Resolver {
 public:
  explicit Resolver(void* library)
      : newer_(exported<GetProcAddressV2>(library, "cuGetProcAddress_v2")),
        older_(exported<GetProcAddress>(library, "cuGetProcAddress")) {}

  [[nodiscard]] bool found() const noexcept { return newer_ != nullptr || older_ != nullptr; }
  // Asks by four arguments from now on; false where that is not possible, or what it did already.
  [[nodiscard]] bool try_older() noexcept { return std::exchange(newer_, nullptr) != nullptr && older_ != nullptr; }
  [[nodiscard]] CUresult wrong_installation() const noexcept { return wrong_installation_; }

  template <class Function>
  bool set(Function& function, const char* name, int version) {
    function = reinterpret_cast<Function>(address(name, version));
    return function != nullptr;
  }

 private:
  void* address(const char* name, int version) {
    void* pointer = nullptr;
    int status = 0;
    const CUresult code = newer_ != nullptr ? newer_(name, &pointer, version, legacy_stream_functions, &status)
                                            : older_(name, &pointer, version, legacy_stream_functions);
    if (is_wrong_installation(code) && wrong_installation_ == success) wrong_installation_ = code;
    return code == success ? pointer : nullptr;
  }

  GetProcAddressV2 newer_;
  GetProcAddress older_;
  CUresult wrong_installation_ = success;
};

#define FERRY_CUDA_SET(name, version, parameters) \
  static_cast<void>(resolver.set(functions.name, #name, version) || note_missing(#name));
#define FERRY_CUDA_CLEAR(name, version, parameters) functions.name = nullptr;

// The first required function that is not there; null when all are.
const char* set_required(Resolver& resolver, Functions& functions) {
  const char* missing = nullptr;
  const auto note_missing = [&missing](const char* name) {
    if (missing == nullptr) missing = name;
    return true;
  };
  FERRY_CUDA_REQUIRED(FERRY_CUDA_SET)
  return missing;
}

void set_optional(Resolver& resolver, Functions& functions) {
  bool complete = true;
  const auto note_missing = [&complete](const char*) {
    complete = false;
    return true;
  };
  FERRY_CUDA_KERNELS(FERRY_CUDA_SET)
  if (!complete) {
    FERRY_CUDA_KERNELS(FERRY_CUDA_CLEAR)
  }
  complete = true;
  FERRY_CUDA_GRAPHS(FERRY_CUDA_SET)
  if (!complete) {
    FERRY_CUDA_GRAPHS(FERRY_CUDA_CLEAR)
  }
  complete = true;
  FERRY_CUDA_STREAM_MEMORY(FERRY_CUDA_SET)
  if (!complete) {
    FERRY_CUDA_STREAM_MEMORY(FERRY_CUDA_CLEAR)
  }
  FERRY_CUDA_SINGLE(FERRY_CUDA_SET)
}

#undef FERRY_CUDA_SET
#undef FERRY_CUDA_CLEAR

LoadedLibrary filled(void* handle, const std::string& library) {
  LoadedLibrary loaded;
  Resolver resolver(handle);
  if (!resolver.found()) {
    loaded.problem = no_entry_point(library);
    return loaded;
  }
  // The version first: an old driver also lacks functions, and its age is the better answer.
  const auto set_version_function = [&resolver, &loaded] {
    return resolver.set(loaded.functions.cuDriverGetVersion, "cuDriverGetVersion", 2020);
  };
  if (!set_version_function() && !(resolver.try_older() && set_version_function())) {
    const CUresult code = resolver.wrong_installation();
    loaded.problem = code != success ? failed_to_initialise(library, code, {}) : no_entry_point(library);
    return loaded;
  }
  const CUresult code = loaded.functions.cuDriverGetVersion(&loaded.version);
  if (code != success) {
    loaded.problem = failed_to_initialise(library, code, {});
    return loaded;
  }
  if (loaded.version < oldest_supported_version) {
    loaded.problem = too_old(library, loaded.version);
    return loaded;
  }
  const char* missing = set_required(resolver, loaded.functions);
  set_optional(resolver, loaded.functions);
  if (missing != nullptr) loaded.problem = missing_function(library, loaded.version, missing);
  return loaded;
}

}  // namespace

std::string library_override() {
  const char* named = ::secure_getenv("TENSORFERRY_LIBCUDA");
  return named != nullptr ? named : "";
}

LoadedLibrary load_library(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* says = ::dlerror();
    LoadedLibrary loaded;
    loaded.problem = missing_library(library, says != nullptr ? says : "no reason given");
    return loaded;
  }
  LoadedLibrary loaded = filled(handle, library);
  if (loaded.problem) ::dlclose(handle);
  return loaded;
}

}  // namespace ferry::cuda
