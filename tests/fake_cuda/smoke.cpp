// Threads that use the fake at once, for a thread sanitizer: each copies its own bytes to the device and back.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

extern "C" {
int cuGetProcAddress_v2(const char*, void**, int, std::uint64_t, int*);
void fake_reset();
int fake_schedule(const char*, std::uint64_t);
void fake_use_device(int);
std::size_t fake_violations(char*, std::size_t);
std::int64_t fake_live(const char*);
}

namespace {

template <class... Arguments>
int call(const char* name, int version, Arguments... arguments) {
  void* function = nullptr;
  if (cuGetProcAddress_v2(name, &function, version, 1, nullptr) != 0 || function == nullptr) return -1;
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

constexpr std::size_t nbytes = 4096;
alignas(nbytes) std::array<std::array<unsigned char, nbytes>, 8> buffers;

int round_trips(std::size_t number) {
  int wrong = 0;
  unsigned char* host = buffers[number].data();
  void *stream = nullptr, *event = nullptr;
  unsigned long long device = 0;
  fake_use_device(0);
  wrong += call("cuMemHostRegister", 6050, static_cast<void*>(host), nbytes, 3U) != 0;
  wrong += call("cuMemAlloc", 3020, &device, nbytes) != 0;
  wrong += call("cuStreamCreateWithPriority", 5050, &stream, 1U, 0) != 0;
  wrong += call("cuEventCreate", 2000, &event, 3U) != 0;
  for (unsigned round = 0; round < 40; ++round) {
    const auto value = static_cast<unsigned char>(number * 40 + round);
    for (auto& byte : buffers[number]) byte = value;
    wrong += call("cuMemcpyHtoDAsync", 3020, device, static_cast<const void*>(host), nbytes, stream) != 0;
    wrong += call("cuEventRecord", 2000, event, stream) != 0;
    wrong += call("cuEventSynchronize", 2000, event) != 0;
    for (auto& byte : buffers[number]) byte = 0;
    wrong += call("cuMemcpyDtoHAsync", 3020, static_cast<void*>(host), device, nbytes, stream) != 0;
    wrong += call("cuEventRecord", 2000, event, stream) != 0;
    while (call("cuEventQuery", 2000, event) == 600) std::this_thread::yield();
    for (const auto byte : buffers[number]) wrong += byte != value;
  }
  wrong += call("cuEventDestroy", 4000, event) != 0;
  wrong += call("cuStreamDestroy", 4000, stream) != 0;
  wrong += call("cuMemFree", 3020, device) != 0;
  wrong += call("cuMemHostUnregister", 4000, static_cast<void*>(host)) != 0;
  return wrong;
}

}  // namespace

int main() {
  std::atomic<int> wrong{0};
  for (const char* schedule : {"lazy", "eager", "shuffled", "threaded"}) {
    fake_reset();
    fake_schedule(schedule, 7);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < buffers.size(); ++i) threads.emplace_back([&wrong, i] { wrong += round_trips(i); });
    for (auto& thread : threads) thread.join();
    std::array<char, 2000> text{};
    fake_violations(text.data(), text.size());
    std::printf("%s: wrong %d, pending %ld, violations: %s\n", schedule, wrong.load(),
                static_cast<long>(fake_live("pending")), text.data());
    wrong += text[0] != '\0' || fake_live("device_bytes") != 0 || fake_live("host_registrations") != 0;
  }
  fake_reset();
  return wrong.load() == 0 ? 0 : 1;
}
