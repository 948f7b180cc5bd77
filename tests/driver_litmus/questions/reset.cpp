// What a reset of the primary context leaves. Asked alone: nothing of the context is good for anything afterwards.
#include "resources.hpp"

namespace ferry::litmus {
namespace {

unsigned long long id_of(Lab& lab, cuda::CUcontext context, const char* when) {
  unsigned long long id = 0;
  lab.must(lab.driver().cuCtxGetId(context, &id), when);
  return id;
}

// Resets the primary context behind our back, as a library or the user may.
void reset(Lab& lab) {
  lab.need(lab.driver().cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset");
  const cuda::CUdevice device = lab.device();
  lab.must(lab.driver().cuDevicePrimaryCtxReset(device), "cuDevicePrimaryCtxReset");
}

}  // namespace

std::span<const Question> reset_questions() {
  static const std::vector<Question> all{
      {"id_after_reset",
       "after a reset the context that is retained has another id",
       Basis::documented,
       {"another id"},
       [](Lab& lab) {
         const auto before = id_of(lab, lab.context(), "cuCtxGetId");
         reset(lab);
         lab.forget_context();
         cuda::CUcontext again = nullptr;
         lab.must(lab.driver().cuDevicePrimaryCtxRetain(&again, lab.device()), "cuDevicePrimaryCtxRetain");
         return std::string(id_of(lab, again, "cuCtxGetId of the new one") == before ? "the same id" : "another id");
       },
       false,
       true},
      {"id_of_the_old_handle_after_reset",
       "how the old handle answers before somebody retains the context again",
       Basis::open,
       {},
       [](Lab& lab) {
         const cuda::CUcontext context = lab.context();
         const auto before = id_of(lab, context, "cuCtxGetId");
         reset(lab);
         lab.forget_context();
         unsigned long long id = 0;
         const cuda::CUresult code = lab.driver().cuCtxGetId(context, &id);
         return code != cuda::success ? say(code) : std::string(id == before ? "the same id" : "another id");
       },
       false,
       true},
      {"handle_after_reset",
       "whether the primary context keeps its address through a reset",
       Basis::open,
       {"the same", "another"},
       [](Lab& lab) {
         const cuda::CUcontext before = lab.context();
         reset(lab);
         lab.forget_context();
         cuda::CUcontext again = nullptr;
         lab.must(lab.driver().cuDevicePrimaryCtxRetain(&again, lab.device()), "cuDevicePrimaryCtxRetain");
         return std::string(again == before ? "the same" : "another");
       },
       false,
       true},
      {"state_after_reset",
       "whether a primary context that is still retained counts as active after a reset",
       Basis::open,
       {"active", "inactive"},
       [](Lab& lab) {
         reset(lab);
         lab.forget_context();
         unsigned flags = 0;
         int active = 0;
         lab.must(lab.driver().cuDevicePrimaryCtxGetState(lab.device(), &flags, &active), "cuDevicePrimaryCtxGetState");
         return std::string(active != 0 ? "active" : "inactive");
       },
       false,
       true},
      {"event_after_reset",
       "an event of before the reset is refused",
       Basis::assumed,
       {"refused"},
       [](Lab& lab) {
         cuda::CUevent event = nullptr;
         lab.must(lab.driver().cuEventCreate(&event, cuda::event_disable_timing), "cuEventCreate");
         reset(lab);
         lab.forget_context();
         return accepted(lab.driver().cuEventQuery(event));
       },
       false,
       true},
      {"stream_after_reset",
       "a stream of before the reset is refused",
       Basis::assumed,
       {"refused"},
       [](Lab& lab) {
         cuda::CUstream stream = nullptr;
         lab.must(lab.driver().cuStreamCreateWithPriority(&stream, non_blocking, 0), "cuStreamCreateWithPriority");
         reset(lab);
         lab.forget_context();
         return accepted(lab.driver().cuStreamQuery(stream));
       },
       false,
       true},
      {"registration_after_reset",
       "whether registered memory stays registered through a reset",
       Basis::open,
       {},
       [](Lab& lab) {
         const Pages pages(8192);
         lab.must(lab.driver().cuMemHostRegister(pages.data(), 8192, portable_and_mapped), "cuMemHostRegister");
         reset(lab);
         lab.forget_context();
         cuda::CUcontext again = nullptr;
         lab.must(lab.driver().cuDevicePrimaryCtxRetain(&again, lab.device()), "cuDevicePrimaryCtxRetain");
         lab.must(lab.driver().cuCtxPushCurrent(again), "cuCtxPushCurrent");
         return "unregister: " + say(lab.driver().cuMemHostUnregister(pages.data()));
       },
       false,
       true},
  };
  return all;
}

}  // namespace ferry::litmus
