// Addresses of registered memory for the device.
#include "resources.hpp"

namespace ferry::litmus {
namespace {

constexpr std::size_t page = 4096;
constexpr int can_use_host_pointer = 91;  // CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM

cuda::CUdeviceptr mapped(const Lab& lab, void* data) {
  cuda::CUdeviceptr pointer = 0;
  lab.must(lab.driver().cuMemHostGetDevicePointer(&pointer, data, 0), "cuMemHostGetDevicePointer");
  return pointer;
}

std::string mapping_code(const Lab& lab, void* data, unsigned flags = 0) {
  cuda::CUdeviceptr pointer = 0;
  return say(lab.driver().cuMemHostGetDevicePointer(&pointer, data, flags));
}

// Whether every device says that host pointers may be used for registered memory.
bool all_use_host_pointers(const Lab& lab) {
  for (cuda::CUdevice device = 0; device < lab.device_count(); ++device) {
    int value = 0;
    lab.must(lab.driver().cuDeviceGetAttribute(&value, can_use_host_pointer, device), "cuDeviceGetAttribute");
    if (value == 0) return false;
  }
  return true;
}

}  // namespace

std::span<const Question> mapping_questions() {
  static const std::vector<Question> all{
      {"address_of_registered_memory",
       "host and device address are equal exactly where every device's attribute says so",
       Basis::documented,
       {"as the attribute says"},
       [](Lab& lab) {
         const Pages pages(page);
         const Registration registration(lab, pages.data(), page);
         const bool equal = mapped(lab, pages.data()) == reinterpret_cast<cuda::CUdeviceptr>(pages.data());
         if (equal == all_use_host_pointers(lab)) return std::string("as the attribute says");
         return std::string(equal ? "equal" : "different");
       }},
      {"host_and_device_address",
       "whether they are equal here",
       Basis::open,
       {},
       [](Lab& lab) {
         const Pages pages(page);
         const Registration registration(lab, pages.data(), page);
         const bool equal = mapped(lab, pages.data()) == reinterpret_cast<cuda::CUdeviceptr>(pages.data());
         return std::string(equal ? "equal" : "different");
       }},
      {"address_of_driver_memory",
       "whether memory of cuMemHostAlloc has one address: two comments in cuda.h contradict each other",
       Basis::open,
       {},
       [](Lab& lab) {
         const DriverPinned memory(lab, page);
         const bool equal = mapped(lab, memory.data()) == reinterpret_cast<cuda::CUdeviceptr>(memory.data());
         return std::string(equal ? "equal" : "different");
       }},
      {"address_inside_of_a_registration",
       "an inner address maps to the base's plus its offset",
       Basis::assumed,
       {"base plus offset"},
       [](Lab& lab) {
         const Pages pages(3 * page);
         const Registration registration(lab, pages.data(), 3 * page);
         const cuda::CUdeviceptr base = mapped(lab, pages.data());
         return std::string(mapped(lab, pages.data() + 5000) == base + 5000 ? "base plus offset" : "another");
       }},
      {"addresses_of_adjacent_registrations",
       "whether adjacent registrations are adjacent for the device",
       Basis::open,
       {},
       [](Lab& lab) {
         const Pages pages(2 * page);
         const Registration first(lab, pages.data(), page);
         const Registration second(lab, pages.data() + page, page);
         const bool adjacent = mapped(lab, pages.data() + page) == mapped(lab, pages.data()) + page;
         return std::string(adjacent ? "adjacent" : "apart");
       }},
      {"address_of_pageable_memory",
       "pageable memory has none",
       Basis::assumed,
       {"refused"},
       [](Lab& lab) {
         const Pages pages(page);
         cuda::CUdeviceptr pointer = 0;
         return accepted(lab.driver().cuMemHostGetDevicePointer(&pointer, pages.data(), 0));
       }},
      {"address_without_the_mapping_flag",
       "whether memory registered without DEVICEMAP has one: the documentation says no, unified addressing yes",
       Basis::open,
       {},
       [](Lab& lab) {
         const Pages pages(page);
         const Registration registration(lab, pages.data(), page, cuda::memhostregister_portable);
         return mapping_code(lab, pages.data());
       }},
      {"address_with_flags",
       "the flags of the question must be 0",
       Basis::documented,
       {say(result::invalid_value)},
       [](Lab& lab) {
         const Pages pages(page);
         const Registration registration(lab, pages.data(), page);
         return mapping_code(lab, pages.data(), 1);
       }},
      {"address_after_unregistering",
       "unregistered memory has none",
       Basis::documented,
       {"refused"},
       [](Lab& lab) {
         const Pages pages(page);
         Registration registration(lab, pages.data(), page);
         lab.must(registration.end(), "cuMemHostUnregister");
         cuda::CUdeviceptr pointer = 0;
         return accepted(lab.driver().cuMemHostGetDevicePointer(&pointer, pages.data(), 0));
       }},
  };
  return all;
}

}  // namespace ferry::litmus
