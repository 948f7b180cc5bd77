// What cuPointerGetAttributes says about each kind of memory: with it foreign arrays are classified.
#include <array>

#include "resources.hpp"

namespace ferry::litmus {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t asked = 10000;  // no multiple of anything

constexpr int attribute_context = 1, attribute_type = cuda::pointer_attribute_memory_type, attribute_device_pointer = 3,
              attribute_host_pointer = 4, attribute_managed = cuda::pointer_attribute_is_managed, attribute_ordinal = 9,
              attribute_start = cuda::pointer_attribute_range_start_addr,
              attribute_size = cuda::pointer_attribute_range_size;

struct Facts {
  cuda::CUresult code = cuda::success;
  cuda::CUcontext context = nullptr;
  unsigned type = 0, managed = 0;
  cuda::CUdeviceptr device_pointer = 0, start = 0;
  void* host_pointer = nullptr;
  int ordinal = -100;
  std::size_t size = 0;
};

Facts facts_of(const Lab& lab, cuda::CUdeviceptr pointer) {
  Facts f;
  std::array attributes{attribute_context, attribute_type,    attribute_device_pointer, attribute_host_pointer,
                        attribute_managed, attribute_ordinal, attribute_start,          attribute_size};
  std::array<void*, 8> values{&f.context, &f.type,    &f.device_pointer, &f.host_pointer,
                              &f.managed, &f.ordinal, &f.start,          &f.size};
  f.code = lab.driver().cuPointerGetAttributes(8, attributes.data(), values.data(), pointer);
  return f;
}
Facts facts_of(const Lab& lab, const void* pointer) {
  return facts_of(lab, reinterpret_cast<cuda::CUdeviceptr>(pointer));
}

std::string kind(const Facts& f) {
  if (f.code != cuda::success) return say(f.code);
  if (f.type == cuda::memorytype_host) return "host";
  if (f.type == cuda::memorytype_device) return "device";
  return f.type == 0 ? "none" : "type " + std::to_string(f.type);
}

// The range that the driver names, beside the one that was asked for.
std::string range(const Facts& f, cuda::CUdeviceptr begin, std::size_t nbytes) {
  if (f.code != cuda::success) return say(f.code);
  if (f.start == 0 && f.size == 0) return "no range";
  if (f.start == begin && f.size == nbytes) return "exact";
  if (f.start <= begin && f.start + f.size >= begin + nbytes) return "wider";
  return "another";
}

}  // namespace

std::span<const Question> pointer_questions() {
  static const std::vector<Question> all{
      {"kind_of_device_memory",
       "device memory is told as such",
       Basis::documented,
       {"device"},
       [](Lab& lab) {
         const DeviceBytes bytes(lab, asked);
         return kind(facts_of(lab, bytes + 77));
       }},
      {"range_of_device_memory",
       "its range is what was allocated",
       Basis::assumed,
       {"exact"},
       [](Lab& lab) {
         const DeviceBytes bytes(lab, asked);
         return range(facts_of(lab, bytes + 77), bytes, asked);
       }},
      {"kind_of_registered_memory",
       "registered memory is host memory",
       Basis::documented,
       {"host"},
       [](Lab& lab) {
         const Pages pages(4 * page);
         const Registration registration(lab, pages.data(), asked);
         return kind(facts_of(lab, pages.data() + 77));
       }},
      {"range_of_registered_memory",
       "its range is what was registered: so both ends of an array can be looked up",
       Basis::assumed,
       {"exact"},
       [](Lab& lab) {
         const Pages pages(4 * page);
         const Registration registration(lab, pages.data(), asked);
         return range(facts_of(lab, pages.data() + 77), reinterpret_cast<cuda::CUdeviceptr>(pages.data()), asked);
       }},
      {"range_of_memory_registered_at_an_odd_address",
       "whether a range that begins inside a page is named by its bytes or by its pages",
       Basis::open,
       {},
       [](Lab& lab) {
         const Pages pages(4 * page);
         unsigned char* begin = pages.data() + 100;
         const Registration registration(lab, begin, asked);
         return range(facts_of(lab, begin + 77), reinterpret_cast<cuda::CUdeviceptr>(begin), asked);
       }},
      {"end_of_registered_memory",
       "whether the rest of the last page counts as registered",
       Basis::open,
       {},
       [](Lab& lab) {
         const Pages pages(4 * page);
         const Registration registration(lab, pages.data(), asked);
         return kind(facts_of(lab, pages.data() + asked + 1));
       }},
      {"page_after_registered_memory",
       "the next page is not",
       Basis::assumed,
       {"none"},
       [](Lab& lab) {
         const Pages pages(4 * page);
         const Registration registration(lab, pages.data(), asked);
         return kind(facts_of(lab, pages.data() + 3 * page));
       }},
      {"kind_of_driver_memory",
       "memory of cuMemHostAlloc is host memory",
       Basis::documented,
       {"host"},
       [](Lab& lab) {
         const DriverPinned memory(lab, asked);
         return kind(facts_of(lab, memory.data() + 77));
       }},
      {"range_of_driver_memory",
       "its range is what was allocated",
       Basis::assumed,
       {"exact"},
       [](Lab& lab) {
         const DriverPinned memory(lab, asked);
         return range(facts_of(lab, memory.data() + 77), reinterpret_cast<cuda::CUdeviceptr>(memory.data()), asked);
       }},
      {"kind_of_pageable_memory",
       "pageable memory is no error: every fact is empty",
       Basis::documented,
       {"none, no range"},
       [](Lab& lab) {
         const Pages pages(4 * page);
         const Facts f = facts_of(lab, pages.data());
         return kind(f) + ", " + range(f, reinterpret_cast<cuda::CUdeviceptr>(pages.data()), 4 * page);
       }},
      {"ordinal_of_pageable_memory",
       "which device it is said to belong to",
       Basis::open,
       {},
       [](Lab& lab) {
         const Pages pages(page);
         return std::to_string(facts_of(lab, pages.data()).ordinal);
       }},
      {"kind_of_unregistered_memory",
       "unregistered memory is pageable again",
       Basis::documented,
       {"none"},
       [](Lab& lab) {
         const Pages pages(page);
         Registration registration(lab, pages.data(), page);
         lab.must(registration.end(), "cuMemHostUnregister");
         return kind(facts_of(lab, pages.data()));
       }},
      {"kind_of_freed_device_memory",
       "freed device memory is no memory",
       Basis::assumed,
       {"none"},
       [](Lab& lab) {
         DeviceBytes bytes(lab, std::size_t{64} << 20);  // large: small ones share a block that stays
         const cuda::CUdeviceptr was = bytes;
         lab.must(bytes.free(), "cuMemFree");
         return kind(facts_of(lab, was));
       }},
      {"context_of_registered_memory",
       "registered memory names the context that registered it",
       Basis::documented,
       {"ours"},
       [](Lab& lab) {
         const Pages pages(page);
         const Registration registration(lab, pages.data(), page);
         const Facts f = facts_of(lab, pages.data());
         return std::string(f.context == lab.context() ? "ours" : f.context == nullptr ? "none" : "another");
       }},
      {"pointers_of_registered_memory",
       "both its addresses are named",
       Basis::documented,
       {"both"},
       [](Lab& lab) {
         const Pages pages(page);
         const Registration registration(lab, pages.data(), page);
         cuda::CUdeviceptr mapped = 0;
         lab.must(lab.driver().cuMemHostGetDevicePointer(&mapped, pages.data(), 0), "cuMemHostGetDevicePointer");
         const Facts f = facts_of(lab, pages.data());
         return std::string(f.host_pointer == pages.data() && f.device_pointer == mapped ? "both" : "not both");
       }},
      {"managed_fact",
       "neither device nor registered memory is managed",
       Basis::documented,
       {"not managed"},
       [](Lab& lab) {
         const DeviceBytes bytes(lab, asked);
         const Pages pages(page);
         const Registration registration(lab, pages.data(), page);
         const bool managed = facts_of(lab, bytes).managed != 0 || facts_of(lab, pages.data()).managed != 0;
         return std::string(managed ? "managed" : "not managed");
       }},
      {"facts_without_context",
       "the kind of a pointer can be asked where no context is current",
       Basis::assumed,
       {"device"},
       [](Lab& lab) {
         const DeviceBytes bytes(lab, asked);
         const WithoutContext without(lab);
         Facts f;
         int attribute = attribute_type;
         void* value = &f.type;
         f.code = lab.driver().cuPointerGetAttributes(1, &attribute, &value, bytes);
         return kind(f);
       }},
      {"unknown_fact",
       "an unknown attribute is refused",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) {
         const DeviceBytes bytes(lab, asked);
         int attribute = 9999;
         std::size_t out[4] = {};
         void* value = out;
         return say(lab.driver().cuPointerGetAttributes(1, &attribute, &value, bytes));
       }},
  };
  return all;
}

}  // namespace ferry::litmus
