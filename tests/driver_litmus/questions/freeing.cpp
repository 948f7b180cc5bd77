// Giving memory back while work on it is under way: which calls wait, and which only look as if they did.
#include <memory>

#include "probe.hpp"

namespace ferry::litmus {
namespace {

// Whether a stream had become idle by the time that a call returned.
std::string waited(Lab& lab, cuda::CUstream stream, cuda::CUresult code) {
  if (code != cuda::success) return say(code);
  const cuda::CUresult state = lab.driver().cuStreamQuery(stream);
  return state == cuda::success ? "waited" : state == result::not_ready ? "did not wait" : say(state);
}

std::string free_other_memory(Lab& lab) {
  DeviceBytes bytes(lab, 1 << 20);
  const Stream stream(lab);
  lab.work_long(stream);
  return waited(lab, stream, bytes.free());
}

std::string unregister_while_pending(Lab& lab) {
  const Probe probe(lab);
  const Stream stream(lab);
  const Pages pages(Probe::nbytes);
  Registration registration(lab, pages.data(), Probe::nbytes);
  lab.work_long(stream);
  lab.must(lab.driver().cuMemcpyDtoHAsync(pages.data(), probe.cell(), Probe::nbytes, stream), "cuMemcpyDtoHAsync");
  std::string answer = waited(lab, stream, registration.end());
  lab.settle();  // the pages must not go before the copy
  return answer;
}

std::string unregister_other_memory(Lab& lab) {
  const Stream stream(lab);
  const Pages pages(4096);
  Registration registration(lab, pages.data(), 4096);
  lab.work_long(stream);
  return waited(lab, stream, registration.end());
}

std::string register_while_busy(Lab& lab) {
  const Stream stream(lab);
  const Pages pages(1 << 20);
  lab.work_long(stream);
  const cuda::CUresult code = lab.driver().cuMemHostRegister(pages.data(), pages.size(), portable_and_mapped);
  std::string answer = waited(lab, stream, code);
  if (code == cuda::success) {
    lab.settle();
    lab.driver().cuMemHostUnregister(pages.data());
  }
  return answer;
}

std::string allocate_while_busy(Lab& lab) {
  const Stream stream(lab);
  lab.work_long(stream);
  void* memory = nullptr;
  const cuda::CUresult code = lab.driver().cuMemHostAlloc(&memory, 1 << 20, portable_and_mapped);
  std::string answer = waited(lab, stream, code);
  if (code == cuda::success) {
    lab.settle();
    lab.driver().cuMemFreeHost(memory);
  }
  return answer;
}

// Memory given back in stream order after its last use: the use still gets the bytes.
std::string free_in_stream_order(Lab& lab) {
  lab.need(lab.driver().cuMemAllocAsync, "cuMemAllocAsync");
  Probe probe(lab);
  const Stream stream(lab);
  const Event done(lab);
  cuda::CUdeviceptr staging = 0;
  lab.must(lab.driver().cuMemAllocAsync(&staging, Probe::nbytes, stream), "cuMemAllocAsync");
  probe.change_late(stream);
  const cuda::CUresult copied = lab.driver().cuMemcpyDtoDAsync(staging, probe.cell(), Probe::nbytes, stream);
  const cuda::CUresult fetched = lab.driver().cuMemcpyDtoHAsync(probe.host(), staging, Probe::nbytes, stream);
  lab.must(lab.driver().cuMemFreeAsync(staging, stream), "cuMemFreeAsync");
  lab.must(copied, "cuMemcpyDtoDAsync");
  lab.must(fetched, "cuMemcpyDtoHAsync");
  done.record(stream);
  done.wait();
  return probe.fetched();
}

std::string free_while_pending(Lab& lab) {
  Probe probe(lab);
  const Stream stream(lab);
  auto source = std::make_unique<DeviceBytes>(lab, Probe::nbytes);
  lab.work_long(stream);
  lab.must(lab.driver().cuMemcpyDtoDAsync(*source, probe.cell(), Probe::nbytes, stream), "cuMemcpyDtoDAsync");
  return waited(lab, stream, source->free());
}

}  // namespace

std::span<const Question> freeing_questions() {
  static const std::vector<Question> all{
      {"free_in_stream_order",
       "memory freed in stream order lives until its last earlier use",
       Basis::documented,
       {new_value},
       free_in_stream_order},
      {"free_of_unused_memory_while_busy",
       "whether cuMemFree waits for work that does not use the memory",
       Basis::open,
       {},
       free_other_memory},
      {"free_while_pending",
       "whether cuMemFree waits for work that uses the memory",
       Basis::open,
       {},
       free_while_pending,
       false,
       true},
      {"unregister_of_unused_memory_while_busy",
       "whether cuMemHostUnregister waits for work that does not use the memory",
       Basis::open,
       {},
       unregister_other_memory},
      {"unregister_while_pending",
       "whether cuMemHostUnregister is a fence for copies into the memory",
       Basis::open,
       {},
       unregister_while_pending,
       false,
       true},
      {"register_while_busy", "whether cuMemHostRegister waits for the device", Basis::open, {}, register_while_busy},
      {"driver_memory_while_busy", "whether cuMemHostAlloc waits for the device", Basis::open, {}, allocate_while_busy},
      {"event_destroyed_while_busy",
       "destroying a pending event does not wait",
       Basis::documented,
       {"did not wait"},
       [](Lab& lab) {
         const Stream stream(lab);
         Event event(lab);
         lab.work_long(stream);
         event.record(stream);
         return waited(lab, stream, event.destroy());
       },
       true},
  };
  return all;
}

}  // namespace ferry::litmus
