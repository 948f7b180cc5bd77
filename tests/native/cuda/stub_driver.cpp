// Libraries that are no proper driver: what the fake driver cannot express. Each is this file with other exports.
//   STUB_ENTRY 0: no entry point   4: cuGetProcAddress with four arguments   5: cuGetProcAddress_v2
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#define STUB_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::string requests;  // "name version flags", one a line
std::string absent;    // names that are answered with success and no function
int version = 12040;
int answer = 0;                  // of every function
int lookup = 0;                  // of cuGetProcAddress
std::atomic<int> calls = 0;      // of functions other than those below
std::atomic<bool> held = false;  // functions do not return

int get_version(int* out) {
  *out = version;
  return answer;
}

int count_devices(int* out) {
  ++calls;
  *out = 1;
  return answer;
}

int any_function() {
  ++calls;
  while (held) {
  }
  return answer;
}

[[maybe_unused]] int look_up(const char* name, void** function, int requested, std::uint64_t flags) {
  requests += std::string(name) + " " + std::to_string(requested) + " " + std::to_string(flags) + "\n";
  *function = nullptr;
  if (lookup != 0) return lookup;
  if (absent.find(std::string(" ") + name + " ") != std::string::npos) return 0;
  *function = std::strcmp(name, "cuDriverGetVersion") == 0 ? reinterpret_cast<void*>(&get_version)
              : std::strcmp(name, "cuDeviceGetCount") == 0 ? reinterpret_cast<void*>(&count_devices)
                                                           : reinterpret_cast<void*>(&any_function);
  return 0;
}

}  // namespace

STUB_EXPORT void stub_set(int driver_version, int every_answer, int lookup_answer, const char* absent_names) {
  version = driver_version;
  answer = every_answer;
  lookup = lookup_answer;
  absent = std::string(" ") + absent_names + " ";
  requests.clear();
  calls = 0;
}
STUB_EXPORT const char* stub_requests() { return requests.c_str(); }
STUB_EXPORT int stub_calls() { return calls; }
STUB_EXPORT void stub_hold(int hold) { held = hold != 0; }

#if STUB_ENTRY == 4
STUB_EXPORT int cuGetProcAddress(const char* name, void** function, int requested, std::uint64_t flags) {
  return look_up(name, function, requested, flags);
}
#elif STUB_ENTRY == 5
STUB_EXPORT int cuGetProcAddress_v2(const char* name, void** function, int requested, std::uint64_t flags,
                                    int* status) {
  *status = 0;
  return look_up(name, function, requested, flags);
}
#endif
