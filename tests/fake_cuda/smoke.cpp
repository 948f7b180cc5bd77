// Threads that use the fake at once, for a thread sanitizer: each copies its own bytes to the device and back,
// now by a call and now by a graph.
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
void fake_drain();
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

std::atomic<int> destroyed{0};
std::array<int, 8> numbers;  // written before the driver's thread reads them
void add_number(void* data) { destroyed += *static_cast<int*>(data); }

/// A graph that copies the bytes of one buffer from the device; null where that fails.
void* captured_copy(unsigned char* host, unsigned long long device, void* stream, int* number) {
  void *graph = nullptr, *executable = nullptr;
  if (call("cuStreamBeginCapture", 10010, stream, 2) != 0) return nullptr;
  call("cuMemcpyDtoHAsync", 3020, static_cast<void*>(host), device, nbytes, stream);
  int status = 0;
  void* object = nullptr;
  *number = 1;
  call("cuStreamGetCaptureInfo", 11030, stream, &status, static_cast<std::uint64_t*>(nullptr), &graph,
       static_cast<const void***>(nullptr), static_cast<std::size_t*>(nullptr));
  call("cuUserObjectCreate", 11030, &object, static_cast<void*>(number), &add_number, 1U, 1U);
  call("cuGraphRetainUserObject", 11030, graph, object, 1U, 1U);
  if (call("cuStreamEndCapture", 10000, stream, &graph) != 0) return nullptr;
  call("cuGraphInstantiate", 12000, &executable, graph, 0ULL);
  call("cuGraphDestroy", 10000, graph);
  return executable;
}

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
  void* const replay = captured_copy(host, device, stream, &numbers[number]);
  for (unsigned round = 0; round < 40; ++round) {
    const auto value = static_cast<unsigned char>(number * 40 + round);
    for (auto& byte : buffers[number]) byte = value;
    wrong += call("cuMemcpyHtoDAsync", 3020, device, static_cast<const void*>(host), nbytes, stream) != 0;
    wrong += call("cuEventRecord", 2000, event, stream) != 0;
    wrong += call("cuEventSynchronize", 2000, event) != 0;
    for (auto& byte : buffers[number]) byte = 0;
    wrong += round % 2 == 0 ? call("cuMemcpyDtoHAsync", 3020, static_cast<void*>(host), device, nbytes, stream) != 0
                            : call("cuGraphLaunch", 10000, replay, stream) != 0;
    wrong += call("cuEventRecord", 2000, event, stream) != 0;
    while (call("cuEventQuery", 2000, event) == 600) std::this_thread::yield();
    for (const auto byte : buffers[number]) wrong += byte != value;
  }
  wrong += call("cuGraphExecDestroy", 10000, replay) != 0;
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
    fake_drain();
    wrong += destroyed.exchange(0) != static_cast<int>(buffers.size());
    std::array<char, 2000> text{};
    fake_violations(text.data(), text.size());
    std::printf("%s: wrong %d, pending %ld, violations: %s\n", schedule, wrong.load(),
                static_cast<long>(fake_live("pending")), text.data());
    wrong += text[0] != '\0' || fake_live("device_bytes") != 0 || fake_live("host_registrations") != 0;
  }
  fake_reset();
  return wrong.load() == 0 ? 0 : 1;
}
