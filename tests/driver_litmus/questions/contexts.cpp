// Primary contexts and each thread's stack of contexts.
#include "second_context.hpp"

namespace ferry::litmus {
namespace {

std::string current_name(Lab& lab) {
  cuda::CUcontext current = nullptr;
  const cuda::CUresult code = lab.driver().cuCtxGetCurrent(&current);
  if (code != cuda::success) return say(code);
  return current == nullptr ? "none" : current == lab.context() ? "the same" : "another";
}

std::string state(Lab& lab, cuda::CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  const cuda::CUresult code = lab.driver().cuDevicePrimaryCtxGetState(device, &flags, &active);
  return code != cuda::success ? say(code) : active != 0 ? "active" : "inactive";
}

unsigned long long id_of(Lab& lab, cuda::CUcontext context) {
  unsigned long long id = 0;
  lab.must(lab.driver().cuCtxGetId(context, &id), "cuCtxGetId");
  return id;
}

std::string retain_twice(Lab& lab) {
  cuda::CUcontext again = nullptr;
  lab.must(lab.driver().cuDevicePrimaryCtxRetain(&again, lab.device()), "cuDevicePrimaryCtxRetain");
  const std::string same = again == lab.context() ? "the same" : "another";
  lab.must(lab.driver().cuDevicePrimaryCtxRelease(lab.device()), "cuDevicePrimaryCtxRelease");
  return same + ", then " + state(lab, lab.device());
}

std::string set_current_replaces(Lab& lab) {
  lab.need(lab.driver().cuCtxSetCurrent, "cuCtxSetCurrent");
  const Driver& d = lab.driver();
  lab.must(d.cuCtxPushCurrent(lab.context()), "cuCtxPushCurrent");
  lab.must(d.cuCtxSetCurrent(nullptr), "cuCtxSetCurrent");
  std::string left = current_name(lab);  // the context below, if setting NULL popped
  cuda::CUcontext popped = nullptr;
  d.cuCtxPopCurrent(&popped);  // so that there are as many pops as pushes again
  lab.must(d.cuCtxSetCurrent(lab.context()), "cuCtxSetCurrent");
  return left;
}

}  // namespace

std::span<const Question> context_questions() {
  static const std::vector<Question> all{
      {"init_makes_nothing_current",
       "cuInit makes no context current",
       Basis::assumed,
       {"none"},
       [](Lab& lab) { return std::string(lab.first().context_current_after_init ? "one" : "none"); }},
      {"init_activates_nothing",
       "cuInit activates no primary context",
       Basis::assumed,
       {"inactive"},
       [](Lab& lab) { return std::string(lab.first().primary_active_after_init ? "active" : "inactive"); }},
      {"release_of_unretained",
       "a primary context that nobody retained cannot be released",
       Basis::documented,
       {say(result::invalid_context)},
       [](Lab& lab) { return say(lab.first().release_of_unretained); }},
      {"retain_is_counted",
       "retaining again gives the same context, and one release leaves it active",
       Basis::documented,
       {"the same, then active"},
       retain_twice},
      {"retain_pushes_nothing",
       "retaining makes nothing current",
       Basis::documented,
       {"none"},
       [](Lab& lab) {
         const WithoutContext without(lab);
         cuda::CUcontext again = nullptr;
         lab.must(lab.driver().cuDevicePrimaryCtxRetain(&again, lab.device()), "cuDevicePrimaryCtxRetain");
         const std::string current = current_name(lab);
         lab.must(lab.driver().cuDevicePrimaryCtxRelease(lab.device()), "cuDevicePrimaryCtxRelease");
         return current;
       }},
      {"retained_primary_is_active",
       "a retained primary context is active",
       Basis::documented,
       {"active"},
       [](Lab& lab) { return state(lab, lab.device()); }},
      {"state_of_another_device",
       "another device's primary context stays inactive until it is retained",
       Basis::documented,
       {"inactive"},
       [](Lab& lab) {
         if (lab.device_count() < 2) throw NotAsked("one device");
         return state(lab, 1);
       }},
      {"state_of_no_device",
       "the state of a device that does not exist is refused",
       Basis::documented,
       {say(result::invalid_device), say(result::invalid_value)},
       [](Lab& lab) { return state(lab, 9999); }},
      {"pop_of_an_empty_stack",
       "popping an empty stack is refused and harmless",
       Basis::assumed,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const WithoutContext without(lab);
         cuda::CUcontext popped = nullptr;
         return say(lab.driver().cuCtxPopCurrent(&popped));
       }},
      {"push_of_null",
       "NULL cannot be pushed",
       Basis::assumed,
       {say(result::invalid_context), say(result::invalid_value)},
       [](Lab& lab) {
         const cuda::CUresult code = lab.driver().cuCtxPushCurrent(nullptr);
         cuda::CUcontext popped = nullptr;
         if (code == cuda::success) lab.driver().cuCtxPopCurrent(&popped);
         return say(code);
       }},
      {"pop_restores",
       "a pop makes the context below current again",
       Basis::documented,
       {"the same"},
       [](Lab& lab) {
         lab.must(lab.driver().cuCtxPushCurrent(lab.context()), "cuCtxPushCurrent");
         cuda::CUcontext popped = nullptr;
         lab.must(lab.driver().cuCtxPopCurrent(&popped), "cuCtxPopCurrent");
         return current_name(lab);
       }},
      {"set_current_of_null_pops",
       "cuCtxSetCurrent(NULL) pops: it would take away a context that somebody had pushed",
       Basis::documented,
       {"the same"},
       set_current_replaces},
      {"device_without_context",
       "cuCtxGetDevice needs a current context",
       Basis::assumed,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const WithoutContext without(lab);
         cuda::CUdevice device = -1;
         return say(lab.driver().cuCtxGetDevice(&device));
       }},
      {"each_thread_has_its_stack",
       "what this thread pushed is not current in another",
       Basis::documented,
       {"none"},
       [](Lab& lab) {
         return lab.in_another_thread([&lab] {
           const WithoutContext without(lab);
           return current_name(lab);
         });
       }},
      {"id_is_stable",
       "a context's id does not change, and NULL asks for the current one",
       Basis::documented,
       {"one id"},
       [](Lab& lab) {
         const auto first = id_of(lab, lab.context());
         return std::string(first == id_of(lab, lab.context()) && first == id_of(lab, nullptr) ? "one id" : "two ids");
       }},
      {"id_of_no_context",
       "there is no id where no context is current",
       Basis::assumed,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const WithoutContext without(lab);
         unsigned long long id = 0;
         return say(lab.driver().cuCtxGetId(nullptr, &id));
       }},
      {"ids_of_two_contexts",
       "two contexts have two ids",
       Basis::documented,
       {"two ids"},
       [](Lab& lab) {
         const SecondContext other(lab);
         return std::string(id_of(lab, lab.context()) == id_of(lab, other) ? "one id" : "two ids");
       }},
  };
  return all;
}

}  // namespace ferry::litmus
