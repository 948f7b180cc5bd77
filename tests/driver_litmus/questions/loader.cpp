// What cuGetProcAddress finds, and what works before cuInit.
#include <sstream>

#include "lab.hpp"

namespace ferry::litmus {
namespace {

using Names = std::vector<std::pair<const char*, const void*>>;

#define LITMUS_NAME(name, version, parameters) \
  found.emplace_back(#name, reinterpret_cast<const void*>(lab.driver().name));

std::string which(const Names& names, bool present) {
  std::ostringstream text;
  for (const auto& [name, function] : names) {
    if ((function != nullptr) == present) text << (text.tellp() > 0 ? " " : "") << name;
  }
  return text.str();
}

// "all", "none", or the names of those that are missing.
std::string group(const Names& names) {
  const std::string missing = which(names, false);
  if (missing.empty()) return "all";
  return which(names, true).empty() ? "none" : "missing: " + missing;
}

std::string required(Lab& lab) {
  Names found;
  FERRY_CUDA_REQUIRED(LITMUS_NAME)
  return group(found);
}
std::string kernels(Lab& lab) {
  Names found;
  FERRY_CUDA_KERNELS(LITMUS_NAME)
  return group(found);
}
std::string graphs(Lab& lab) {
  Names found;
  FERRY_CUDA_GRAPHS(LITMUS_NAME)
  return group(found);
}
std::string stream_memory(Lab& lab) {
  Names found;
  FERRY_CUDA_STREAM_MEMORY(LITMUS_NAME)
  return group(found);
}
std::string single(Lab& lab) {
  Names found;
  FERRY_CUDA_SINGLE(LITMUS_NAME)
  return group(found);
}
std::string extra(Lab& lab) {
  Names found;
  LITMUS_EXTRA(LITMUS_NAME)
  return group(found);
}
#undef LITMUS_NAME

std::string answer(const Library::Found& found) {
  return say(found.code) + (found.function == nullptr ? ", NULL" : ", a function") + ", status " +
         std::to_string(found.status);
}

std::string compare(const Library::Found& one, const Library::Found& other) {
  if (one.function == nullptr || other.function == nullptr) return "one is missing";
  return one.function == other.function ? "the same" : "different";
}

}  // namespace

std::span<const Question> loader_questions() {
  static const std::vector<Question> all{
      {"required_functions",
       "every required function is there at the version that we request",
       Basis::documented,
       {"all"},
       required},
      {"kernel_functions", "the functions for kernels come together", Basis::assumed, {"all", "none"}, kernels},
      {"graph_functions", "the functions for user objects come together", Basis::assumed, {"all", "none"}, graphs},
      {"stream_memory_functions",
       "the functions for stream-ordered memory come together",
       Basis::assumed,
       {"all", "none"},
       stream_memory},
      {"single_functions", "the optional functions that stand for themselves", Basis::open, {}, single},
      {"functions_of_this_program", "what these questions need beyond the product's table", Basis::open, {}, extra},
      {"unknown_symbol",
       "a name that does not exist gives success and NULL",
       Basis::documented,
       {"success, NULL, status 1", "success, NULL, status -1"},
       [](Lab& lab) { return answer(lab.library().find("cuNoSuchFunction", 12000)); }},
      {"version_before_the_function",
       "a version before the function's first gives success and NULL",
       Basis::documented,
       {"success, NULL, status 2", "success, NULL, status -1"},
       [](Lab& lab) { return answer(lab.library().find("cuStreamGetCaptureInfo", 9000)); }},
      {"version_beyond_the_driver",
       "a version beyond the driver's own is refused",
       Basis::documented,
       {say(result::invalid_value)},
       [](Lab& lab) { return say(lab.library().find("cuInit", lab.version() + 1000).code); }},
      {"newer_version_is_another_function",
       "a newer number gives another signature under the same name",
       Basis::documented,
       {"different"},
       [](Lab& lab) -> std::string {
         if (lab.version() < 12030) throw NotAsked("the driver is older than the newer signature");
         return compare(lab.library().find("cuStreamGetCaptureInfo", 11030),
                        lab.library().find("cuStreamGetCaptureInfo", 12030));
       }},
      {"per_thread_variant",
       "the flag chooses what a NULL stream means",
       Basis::documented,
       {"different"},
       [](Lab& lab) {
         return compare(lab.library().find("cuMemcpyDtoHAsync", 7000, 1),
                        lab.library().find("cuMemcpyDtoHAsync", 7000, 2));
       }},
      {"version_before_init",
       "cuDriverGetVersion works before cuInit",
       Basis::assumed,
       {"success"},
       [](Lab& lab) { return say(lab.first().version_before_init); }},
      {"count_before_init",
       "other functions say that cuInit was not called",
       Basis::documented,
       {say(result::not_initialized)},
       [](Lab& lab) { return say(lab.first().count_before_init); }},
      {"init_twice",
       "cuInit may be called again",
       Basis::assumed,
       {"success"},
       [](Lab& lab) { return say(lab.driver().cuInit(0)); }},
      {"init_with_flags",
       "flags of cuInit must be 0",
       Basis::documented,
       {say(result::invalid_value)},
       [](Lab& lab) { return say(lab.driver().cuInit(1)); }},
  };
  return all;
}

}  // namespace ferry::litmus
