// Handles of streams, their contexts, their state and their end.
#include "probe.hpp"

namespace ferry::litmus {
namespace {

std::string context_of(Lab& lab, cuda::CUstream stream) {
  cuda::CUcontext context = nullptr;
  const cuda::CUresult code = lab.driver().cuStreamGetCtx(stream, &context);
  if (code != cuda::success) return say(code);
  return context == nullptr ? "none" : context == lab.context() ? "the context" : "another";
}

std::string query(Lab& lab, cuda::CUstream stream) { return say(lab.driver().cuStreamQuery(stream)); }

std::string query_while_busy(Lab& lab, cuda::CUstream asked, cuda::CUstream busy) {
  lab.work_long(busy);
  return query(lab, asked);
}

}  // namespace

std::span<const Question> stream_questions() {
  static const std::vector<Question> all{
      {"context_of_the_legacy_stream",
       "the legacy handle means the current context's stream",
       Basis::documented,
       {"the context"},
       [](Lab& lab) { return context_of(lab, legacy); }},
      {"context_of_the_per_thread_stream",
       "so does the per-thread handle",
       Basis::documented,
       {"the context"},
       [](Lab& lab) { return context_of(lab, per_thread); }},
      {"context_of_a_special_stream_without_context",
       "a special handle means nothing where no context is current",
       Basis::documented,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const WithoutContext without(lab);
         return context_of(lab, legacy);
       }},
      {"context_of_a_stream_without_context",
       "a stream's context can be asked for where none is current",
       Basis::assumed,
       {"the context"},
       [](Lab& lab) {
         const Stream stream(lab);
         const WithoutContext without(lab);
         return context_of(lab, stream);
       }},
      {"create_without_context",
       "a stream cannot be made where no context is current",
       Basis::documented,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const WithoutContext without(lab);
         cuda::CUstream stream = nullptr;
         return say(lab.driver().cuStreamCreateWithPriority(&stream, non_blocking, 0));
       }},
      {"create_with_an_unknown_flag",
       "unknown flags are refused",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) {
         cuda::CUstream stream = nullptr;
         const cuda::CUresult code = lab.driver().cuStreamCreateWithPriority(&stream, 0x40, 0);
         if (code == cuda::success) lab.driver().cuStreamDestroy(stream);
         return say(code);
       }},
      {"create_with_any_priority",
       "a priority out of range is clamped",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         cuda::CUstream stream = nullptr;
         const cuda::CUresult code = lab.driver().cuStreamCreateWithPriority(&stream, non_blocking, -1000);
         if (code == cuda::success) lab.driver().cuStreamDestroy(stream);
         return say(code);
       }},
      {"destroy_without_context",
       "a stream can be destroyed where no context is current",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         Stream stream(lab);
         const WithoutContext without(lab);
         return say(stream.destroy());
       }},
      {"destroy_of_the_legacy_handle",
       "a special handle cannot be destroyed",
       Basis::assumed,
       {"refused"},
       [](Lab& lab) { return accepted(lab.driver().cuStreamDestroy(legacy)); }},
      {"destroy_while_busy",
       "work of a destroyed stream is still done",
       Basis::documented,
       {new_value},
       [](Lab& lab) {
         Probe probe(lab);
         const Event done(lab);
         Stream stream(lab);
         probe.change_late(stream);
         probe.fetch(stream);
         done.record(stream);
         lab.must(stream.destroy(), "cuStreamDestroy");
         done.wait();
         return probe.fetched();
       }},
      {"query_of_an_idle_stream",
       "a stream without work is done",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         const Stream stream(lab);
         return query(lab, stream);
       }},
      {"query_of_a_busy_stream",
       "a stream with work is not ready",
       Basis::documented,
       {say(result::not_ready)},
       [](Lab& lab) {
         const Stream stream(lab);
         return query_while_busy(lab, stream, stream);
       },
       true},
      {"query_of_another_stream",
       "other non-blocking streams do not count",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         const Stream busy(lab);
         const Stream idle(lab);
         return query_while_busy(lab, idle, busy);
       }},
      {"query_of_legacy_sees_blocking_streams",
       "a query of the legacy stream covers blocking streams",
       Basis::assumed,
       {say(result::not_ready)},
       [](Lab& lab) {
         const Stream busy(lab, blocking);
         return query_while_busy(lab, legacy, busy);
       },
       true},
      {"query_of_legacy_ignores_non_blocking_streams",
       "and no non-blocking ones",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Stream busy(lab);
         return query_while_busy(lab, legacy, busy);
       }},
      {"query_of_a_stream_without_context",
       "whether a real stream can be queried where no context is current",
       Basis::open,
       {"success", say(result::invalid_context)},
       [](Lab& lab) {
         const Stream stream(lab);
         const WithoutContext without(lab);
         return query(lab, stream);
       }},
      {"copy_without_context",
       "a copy in a real stream needs a current context",
       Basis::assumed,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const Probe probe(lab);
         const Stream stream(lab);
         const WithoutContext without(lab);
         return say(lab.driver().cuMemcpyDtoHAsync(probe.host(), probe.cell(), 64, stream));
       }},
  };
  return all;
}

}  // namespace ferry::litmus
