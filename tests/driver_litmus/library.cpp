#include "library.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace ferry::litmus {

Library::Library(const std::string& path) : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    const char* says = ::dlerror();
    throw std::runtime_error(says != nullptr ? says : path + " cannot be opened");
  }
  if (exported("cuGetProcAddress_v2") == nullptr && exported("cuGetProcAddress") == nullptr) {
    throw std::runtime_error(path + " has no cuGetProcAddress: it is no driver, or one before 11.3");
  }
#define LITMUS_SET(name, version, parameters) \
  driver_.name = reinterpret_cast<decltype(driver_.name)>(find(#name, version).function);
#define LITMUS_SET_REQUIRED(name, version, parameters) \
  LITMUS_SET(name, version, parameters)                \
  if (driver_.name == nullptr) missing_.emplace_back(#name);
  FERRY_CUDA_REQUIRED(LITMUS_SET_REQUIRED)
  FERRY_CUDA_OPTIONAL(LITMUS_SET)
  LITMUS_EXTRA(LITMUS_SET)
#undef LITMUS_SET
#undef LITMUS_SET_REQUIRED
}

void* Library::exported(const char* name) const { return ::dlsym(handle_, name); }

Library::Found Library::find(const char* name, int version, std::uint64_t flags) const {
  using Newer = cuda::CUresult (*)(const char*, void**, int, std::uint64_t, int*);
  using Older = cuda::CUresult (*)(const char*, void**, int, std::uint64_t);
  Found found{cuda::success, nullptr, -1};
  if (const auto newer = reinterpret_cast<Newer>(exported("cuGetProcAddress_v2"))) {
    found.code = newer(name, &found.function, version, flags, &found.status);
  } else {
    found.code = reinterpret_cast<Older>(exported("cuGetProcAddress"))(name, &found.function, version, flags);
  }
  if (found.code != cuda::success) found.function = nullptr;
  return found;
}

}  // namespace ferry::litmus
