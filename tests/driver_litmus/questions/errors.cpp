// What the driver says about error codes.
#include <array>

#include "lab.hpp"

namespace ferry::litmus {
namespace {

std::string name_of(Lab& lab, cuda::CUresult code) {
  const char* name = nullptr;
  return lab.driver().cuGetErrorName(code, &name) == cuda::success && name != nullptr ? name : "none";
}

// Every code that the product tells apart.
constexpr std::array told_apart{
    result::invalid_value,
    result::out_of_memory,
    result::not_initialized,
    result::deinitialized,
    result::stub_library,
    result::no_device,
    result::invalid_context,
    result::ecc_uncorrectable,
    result::nvlink_uncorrectable,
    result::not_found,
    result::not_ready,
    result::illegal_address,
    result::launch_timeout,
    result::context_is_destroyed,
    result::device_assert,
    result::host_memory_already_registered,
    result::hardware_stack_error,
    result::illegal_instruction,
    result::misaligned_address,
    result::invalid_address_space,
    result::invalid_pc,
    result::launch_failed,
    result::not_permitted,
    result::not_supported,
    result::system_driver_mismatch,
    result::compat_not_supported_on_device,
    result::mps_client_terminated,
    result::stream_capture_unsupported,
    result::stream_capture_invalidated,
    result::stream_capture_merge,
    result::stream_capture_unmatched,
    result::stream_capture_unjoined,
    result::stream_capture_isolation,
    result::stream_capture_implicit,
    result::captured_event,
    result::stream_capture_wrong_thread,
};

}  // namespace

std::span<const Question> error_questions() {
  static const std::vector<Question> all{
      {"error_name_before_init",
       "names of codes need no cuInit",
       Basis::assumed,
       {"CUDA_ERROR_ILLEGAL_ADDRESS"},
       [](Lab& lab) { return lab.first().error_name_before_init; }},
      {"error_name_of_success",
       "success has a name",
       Basis::documented,
       {"CUDA_SUCCESS"},
       [](Lab& lab) { return name_of(lab, 0); }},
      {"error_names_of_known_codes",
       "every code that the product tells apart has a name and a text",
       Basis::assumed,
       {"all"},
       [](Lab& lab) {
         std::string without;
         for (const cuda::CUresult code : told_apart) {
           const char* text = nullptr;
           const bool has_text = lab.driver().cuGetErrorString(code, &text) == cuda::success && text != nullptr;
           if (!has_text || name_of(lab, code) == "none")
             without += (without.empty() ? "" : " ") + std::to_string(code);
         }
         return without.empty() ? std::string("all") : "without: " + without;
       }},
      {"error_name_of_an_unknown_code",
       "an unknown code is refused and gives NULL",
       Basis::documented,
       {say(result::invalid_value) + ", NULL"},
       [](Lab& lab) {
         const char* text = "unchanged";
         const cuda::CUresult code = lab.driver().cuGetErrorName(123456, &text);
         return say(code) + (text == nullptr ? ", NULL" : ", a text");
       }},
  };
  return all;
}

}  // namespace ferry::litmus
