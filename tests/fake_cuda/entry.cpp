// The two doors that a driver's library has. A library of a driver before 12.0 has the old one only.
#include "symbols.hpp"
#include "world.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

#if !defined(FAKE_CUDA_OLD)
EXPORT int cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags, int* status) {
  if (!fake::world().settings.knows_five_arguments) return fake::not_found;
  return fake::find_symbol(name, version, flags, function, status);
}
#endif

EXPORT int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  return fake::find_symbol(name, version, flags, function, nullptr);
}
