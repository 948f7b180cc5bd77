// What memory can be registered, and how it ends.
#include "second_context.hpp"

namespace ferry::litmus {
namespace {

constexpr std::size_t page = 4096;

cuda::CUresult try_register(const Lab& lab, void* data, std::size_t nbytes, unsigned flags = portable_and_mapped) {
  const cuda::CUresult code = lab.driver().cuMemHostRegister(data, nbytes, flags);
  if (code == cuda::success) lab.driver().cuMemHostUnregister(data);
  return code;
}

bool has_attribute(const Lab& lab, int attribute) {
  int value = 0;
  return lab.driver().cuDeviceGetAttribute(&value, attribute, lab.device()) == cuda::success && value != 0;
}

}  // namespace

std::span<const Question> registration_questions() {
  static const std::vector<Question> all{
      {"register_whole_pages",
       "memory from mmap can be registered",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         const Pages pages(16 * page);
         return say(try_register(lab, pages.data(), 16 * page));
       }},
      {"register_at_odd_addresses",
       "neither start nor size need be aligned",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Pages pages(4 * page);
         return say(try_register(lab, pages.data() + 100, 5001));
       }},
      {"register_again",
       "what was unregistered can be registered again",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         const Pages pages(page);
         lab.must(try_register(lab, pages.data(), page), "cuMemHostRegister");
         return say(try_register(lab, pages.data(), page));
       }},
      {"register_twice",
       "the same range cannot be registered twice",
       Basis::documented,
       {say(result::host_memory_already_registered)},
       [](Lab& lab) {
         const Pages pages(page);
         const Registration first(lab, pages.data(), page);
         return say(try_register(lab, pages.data(), page));
       }},
      {"register_an_overlapping_range",
       "nor one that shares bytes with a registered one",
       Basis::documented,
       {say(result::host_memory_already_registered)},
       [](Lab& lab) {
         const Pages pages(3 * page);
         const Registration first(lab, pages.data(), 2 * page);
         return say(try_register(lab, pages.data() + page, 2 * page));
       }},
      {"register_in_a_shared_page",
       "nor one that shares a page and no byte",
       Basis::assumed,
       {say(result::host_memory_already_registered)},
       [](Lab& lab) {
         const Pages pages(2 * page);
         const Registration first(lab, pages.data(), 1000);
         return say(try_register(lab, pages.data() + 2000, 1000));
       }},
      {"register_nothing",
       "a size of zero is refused",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) {
         const Pages pages(page);
         return say(try_register(lab, pages.data(), 0));
       }},
      {"register_null",
       "so is NULL",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) { return say(try_register(lab, nullptr, page)); }},
      {"register_unmapped_memory",
       "so are addresses without memory",
       Basis::assumed,
       {"refused"},
       [](Lab& lab) {
         void* gone = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         ::munmap(gone, page);
         return accepted(try_register(lab, gone, page));
       }},
      {"register_driver_memory",
       "memory of cuMemHostAlloc is registered already",
       Basis::assumed,
       {say(result::host_memory_already_registered)},
       [](Lab& lab) {
         const DriverPinned memory(lab, page);
         return say(try_register(lab, memory.data(), page));
       }},
      {"register_read_only_memory",
       "memory mapped for reading needs its flag",
       Basis::documented,
       {"refused"},
       [](Lab& lab) {
         const Pages pages(page, PROT_READ);
         return accepted(try_register(lab, pages.data(), page));
       }},
      {"register_read_only_memory_with_its_flag",
       "with the flag it can be registered where the attribute says so, else the flag is not supported",
       Basis::documented,
       {"as the attribute says"},
       [](Lab& lab) {
         const Pages pages(page, PROT_READ);
         const unsigned flags = portable_and_mapped | cuda::memhostregister_read_only;
         const cuda::CUresult code = try_register(lab, pages.data(), page, flags);
         const bool supported = has_attribute(lab, cuda::attribute_read_only_host_register);
         return code == (supported ? cuda::success : result::not_supported) ? "as the attribute says" : say(code);
       }},
      {"register_with_an_unknown_flag",
       "unknown flags are refused",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) {
         const Pages pages(page);
         return say(try_register(lab, pages.data(), page, 0x100));
       }},
      {"register_without_context",
       "registering needs a current context",
       Basis::documented,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const Pages pages(page);
         const WithoutContext without(lab);
         return say(try_register(lab, pages.data(), page));
       }},
      {"unregister_without_context",
       "so does unregistering",
       Basis::assumed,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const Pages pages(page);
         Registration registration(lab, pages.data(), page);
         const WithoutContext without(lab);
         return say(registration.end());
       }},
      {"unregister_from_another_context",
       "portable memory can be unregistered while another context is current",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Pages pages(page);
         Registration registration(lab, pages.data(), page);
         const SecondContext other(lab);
         const Pushed pushed(lab, other);
         return say(registration.end());
       }},
      {"unregister_in_another_thread",
       "and in another thread",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Pages pages(page);
         Registration registration(lab, pages.data(), page);
         return lab.in_another_thread([&] { return say(registration.end()); });
       }},
      {"unregister_unknown_memory",
       "what is not registered cannot be unregistered",
       Basis::documented,
       {say(result::host_memory_not_registered)},
       [](Lab& lab) {
         const Pages pages(page);
         return say(lab.driver().cuMemHostUnregister(pages.data()));
       }},
      {"unregister_by_an_inner_address",
       "a registration ends by its first address only",
       Basis::documented,
       {"refused"},
       [](Lab& lab) {
         const Pages pages(2 * page);
         Registration registration(lab, pages.data(), 2 * page);
         return accepted(lab.driver().cuMemHostUnregister(pages.data() + page));
       }},
      {"unregister_driver_memory",
       "memory of cuMemHostAlloc does not end this way",
       Basis::assumed,
       {"refused"},
       [](Lab& lab) {
         const DriverPinned memory(lab, page);
         return accepted(lab.driver().cuMemHostUnregister(memory.data()));
       }},
      {"free_of_registered_memory",
       "nor registered memory by cuMemFreeHost",
       Basis::assumed,
       {"refused"},
       [](Lab& lab) {
         const Pages pages(page);
         const Registration registration(lab, pages.data(), page);
         return accepted(lab.driver().cuMemFreeHost(pages.data()));
       }},
      {"driver_memory_without_context",
       "cuMemHostAlloc needs a current context",
       Basis::documented,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const WithoutContext without(lab);
         void* memory = nullptr;
         return say(lab.driver().cuMemHostAlloc(&memory, page, portable_and_mapped));
       }},
      {"no_driver_memory",
       "cuMemHostAlloc of no bytes is refused",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) {
         void* memory = nullptr;
         const cuda::CUresult code = lab.driver().cuMemHostAlloc(&memory, 0, portable_and_mapped);
         if (code == cuda::success && memory != nullptr) lab.driver().cuMemFreeHost(memory);
         return say(code);
       }},
  };
  return all;
}

}  // namespace ferry::litmus
