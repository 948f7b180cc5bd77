// Calls while somebody captures: which of them destroy the capture, and in whose thread.
#include <functional>

#include "capturing.hpp"

namespace ferry::litmus {
namespace {

using Call = std::function<cuda::CUresult()>;

const std::string harmless = "success, capture active";
const std::string destroyed = say(result::stream_capture_unsupported) + ", capture invalidated";

enum class Thread : unsigned char { capturing, another };

// Makes a call while a stream is captured in this mode, and tells what became of both.
std::string during(Lab& lab, int capture_mode, Thread thread, int thread_mode, const Call& call) {
  const Stream stream(lab);
  const Capture capture(lab, stream, capture_mode);
  const auto make = [&] {
    const ExchangedMode mode(lab, thread_mode);
    return say(call());
  };
  const std::string code = thread == Thread::another ? lab.in_another_thread(make) : make();
  return code + ", capture " + capture_state(lab, stream);
}
std::string during_in_another(Lab& lab, int thread_mode, const Call& call) {
  return during(lab, capture_global, Thread::another, thread_mode, call);
}

std::string query(Lab& lab, int capture_mode, Thread thread, int thread_mode) {
  const Event event(lab);
  event.record(legacy);
  event.wait();
  return during(lab, capture_mode, thread, thread_mode, [&] { return lab.driver().cuEventQuery(event); });
}
std::string wait(Lab& lab, int thread_mode) {
  const Event event(lab);
  event.record(legacy);
  event.wait();
  return during_in_another(lab, thread_mode, [&] { return lab.driver().cuEventSynchronize(event); });
}
std::string query_stream(Lab& lab, int thread_mode) {
  const Stream other(lab);
  return during_in_another(lab, thread_mode, [&] { return lab.driver().cuStreamQuery(other); });
}
std::string allocate(Lab& lab, int thread_mode) {
  return during_in_another(lab, thread_mode, [&] {
    cuda::CUdeviceptr pointer = 0;
    const cuda::CUresult code = lab.driver().cuMemAlloc(&pointer, 4096);
    if (code == cuda::success) lab.driver().cuMemFree(pointer);
    return code;
  });
}
std::string allocate_host(Lab& lab, int thread_mode) {
  return during_in_another(lab, thread_mode, [&] {
    void* memory = nullptr;
    const cuda::CUresult code = lab.driver().cuMemHostAlloc(&memory, 4096, portable_and_mapped);
    if (code == cuda::success) lab.driver().cuMemFreeHost(memory);
    return code;
  });
}
std::string register_host(Lab& lab, int thread_mode) {
  const Pages pages(4096);
  return during_in_another(lab, thread_mode, [&] {
    const cuda::CUresult code = lab.driver().cuMemHostRegister(pages.data(), 4096, portable_and_mapped);
    if (code == cuda::success) lab.driver().cuMemHostUnregister(pages.data());
    return code;
  });
}
std::string unregister_host(Lab& lab, int thread_mode) {
  const Pages pages(4096);
  Registration registration(lab, pages.data(), 4096);
  return during_in_another(lab, thread_mode, [&] { return registration.end(); });
}

}  // namespace

std::span<const Question> capture_conflict_questions() {
  static const std::vector<Question> all{
      {"query_in_the_capturing_thread",
       "any event query in the thread of a capture destroys it",
       Basis::assumed,
       {destroyed},
       [](Lab& lab) { return query(lab, capture_global, Thread::capturing, capture_global); }},
      {"query_in_another_thread",
       "so does one in any other thread, where the capture is global",
       Basis::assumed,
       {destroyed},
       [](Lab& lab) { return query(lab, capture_global, Thread::another, capture_global); }},
      {"relaxed_query_in_the_capturing_thread",
       "a relaxed thread may query, its own captures notwithstanding",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return query(lab, capture_global, Thread::capturing, capture_relaxed); }},
      {"relaxed_query_in_another_thread",
       "and so may another",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return query(lab, capture_global, Thread::another, capture_relaxed); }},
      {"query_beside_a_thread_local_capture",
       "a thread-local capture concerns its thread only",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return query(lab, capture_thread_local, Thread::another, capture_global); }},
      {"query_in_the_thread_of_a_thread_local_capture",
       "that thread it does concern",
       Basis::assumed,
       {destroyed},
       [](Lab& lab) { return query(lab, capture_thread_local, Thread::capturing, capture_global); }},
      {"query_beside_a_relaxed_capture",
       "a relaxed capture concerns nobody",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return query(lab, capture_relaxed, Thread::another, capture_global); }},
      {"query_in_the_thread_of_a_relaxed_capture",
       "not even its own thread",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return query(lab, capture_relaxed, Thread::capturing, capture_global); }},
      {"thread_local_query_beside_a_global_capture",
       "a thread-local thread ignores captures of others",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return query(lab, capture_global, Thread::another, capture_thread_local); }},
      {"wait_in_another_thread",
       "a wait for an event is as unsafe as a query",
       Basis::assumed,
       {destroyed},
       [](Lab& lab) { return wait(lab, capture_global); }},
      {"relaxed_wait_in_another_thread",
       "and relaxed as harmless",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return wait(lab, capture_relaxed); }},
      {"stream_query_in_another_thread",
       "so is a query of another stream",
       Basis::assumed,
       {destroyed},
       [](Lab& lab) { return query_stream(lab, capture_global); }},
      {"relaxed_stream_query_in_another_thread",
       "and relaxed as harmless",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return query_stream(lab, capture_relaxed); }},
      {"allocation_in_another_thread",
       "an allocation of device memory is unsafe",
       Basis::documented,
       {destroyed},
       [](Lab& lab) { return allocate(lab, capture_global); }},
      {"relaxed_allocation_in_another_thread",
       "and relaxed harmless",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return allocate(lab, capture_relaxed); }},
      {"driver_memory_in_another_thread",
       "so is one of host memory",
       Basis::assumed,
       {destroyed},
       [](Lab& lab) { return allocate_host(lab, capture_global); }},
      {"relaxed_driver_memory_in_another_thread",
       "and relaxed harmless",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return allocate_host(lab, capture_relaxed); }},
      {"registering_in_another_thread",
       "so is registering",
       Basis::assumed,
       {destroyed},
       [](Lab& lab) { return register_host(lab, capture_global); }},
      {"relaxed_registering_in_another_thread",
       "and relaxed harmless",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return register_host(lab, capture_relaxed); }},
      {"unregistering_in_another_thread",
       "whether unregistering is unsafe",
       Basis::open,
       {destroyed, harmless},
       [](Lab& lab) { return unregister_host(lab, capture_global); }},
      {"relaxed_unregistering_in_another_thread",
       "relaxed it is harmless",
       Basis::documented,
       {harmless},
       [](Lab& lab) { return unregister_host(lab, capture_relaxed); }},
      {"new_event_in_another_thread",
       "events may be made and destroyed beside a capture",
       Basis::assumed,
       {harmless},
       [](Lab& lab) {
         return during_in_another(lab, capture_global, [&] {
           cuda::CUevent event = nullptr;
           const cuda::CUresult code = lab.driver().cuEventCreate(&event, cuda::event_disable_timing);
           return code == cuda::success ? lab.driver().cuEventDestroy(event) : code;
         });
       }},
      {"new_stream_in_another_thread",
       "whether streams may",
       Basis::open,
       {destroyed, harmless},
       [](Lab& lab) {
         return during_in_another(lab, capture_global, [&] {
           cuda::CUstream stream = nullptr;
           const cuda::CUresult code = lab.driver().cuStreamCreateWithPriority(&stream, non_blocking, 0);
           return code == cuda::success ? lab.driver().cuStreamDestroy(stream) : code;
         });
       }},
      {"copy_in_another_stream",
       "work in streams that are not captured goes on",
       Basis::documented,
       {harmless},
       [](Lab& lab) {
         const Probe probe(lab);
         const Stream other(lab);
         return during_in_another(lab, capture_global, [&] {
           return lab.driver().cuMemcpyDtoHAsync(probe.host(), probe.cell(), 64, other);
         });
       }},
      {"record_in_another_stream",
       "so do records",
       Basis::documented,
       {harmless},
       [](Lab& lab) {
         const Event event(lab);
         const Stream other(lab);
         return during_in_another(lab, capture_global, [&] { return lab.driver().cuEventRecord(event, other); });
       }},
      {"pointer_facts_beside_a_capture",
       "pointers can be asked about",
       Basis::assumed,
       {harmless},
       [](Lab& lab) {
         const DeviceBytes bytes(lab, 4096);
         return during(lab, capture_global, Thread::capturing, capture_global, [&] {
           unsigned type = 0;
           int attribute = cuda::pointer_attribute_memory_type;
           void* value = &type;
           return lab.driver().cuPointerGetAttributes(1, &attribute, &value, bytes);
         });
       }},
      {"primary_state_beside_a_capture",
       "so can primary contexts",
       Basis::assumed,
       {harmless},
       [](Lab& lab) {
         return during(lab, capture_global, Thread::capturing, capture_global, [&] {
           unsigned flags = 0;
           int active = 0;
           return lab.driver().cuDevicePrimaryCtxGetState(lab.device(), &flags, &active);
         });
       }},
      {"context_record_beside_a_capture",
       "cuCtxRecordEvent destroys every capture of the context",
       Basis::documented,
       {destroyed},
       [](Lab& lab) {
         lab.need(lab.driver().cuCtxRecordEvent, "cuCtxRecordEvent");
         const Event event(lab);
         return during_in_another(lab, capture_relaxed,
                                  [&] { return lab.driver().cuCtxRecordEvent(lab.context(), event); });
       }},
  };
  return all;
}

}  // namespace ferry::litmus
