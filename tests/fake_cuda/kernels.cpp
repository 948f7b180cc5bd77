// The kernels, compiled for the host in a way of their own: with -fsanitize=thread, whose calls before each access of
// memory go to kernel_accesses.cpp, not to a sanitizer. Not above -O1, where accesses would be merged.
#include "kernel_table.hpp"

#define REDIRECT_ACCESS(kind)                \
  ".set __tsan_" kind "1, fake_kernel_" kind \
  "1\n"                                      \
  ".set __tsan_" kind "2, fake_kernel_" kind \
  "2\n"                                      \
  ".set __tsan_" kind "4, fake_kernel_" kind \
  "4\n"                                      \
  ".set __tsan_" kind "8, fake_kernel_" kind \
  "8\n"                                      \
  ".set __tsan_" kind "16, fake_kernel_" kind "16\n"
// clang-format off
asm(REDIRECT_ACCESS("read") REDIRECT_ACCESS("write") REDIRECT_ACCESS("unaligned_read") REDIRECT_ACCESS("unaligned_write")
    ".set __tsan_read_range, fake_kernel_read_range\n"
    ".set __tsan_write_range, fake_kernel_write_range\n"
    ".set __tsan_func_entry, fake_kernel_nothing\n"
    ".set __tsan_func_exit, fake_kernel_nothing\n"
    ".set __tsan_init, fake_kernel_nothing\n"
    ".set __tsan_memcpy, fake_kernel_memcpy\n"
    ".set memcpy, fake_kernel_memcpy\n"
    ".set memmove, fake_kernel_memcpy\n"
    ".set memset, fake_kernel_memset\n");
// clang-format on

#include "kernels/kernel_list.hpp"
#include "kernels/kernels.cu"
#include "toy_kernels.cu"

namespace fake {
namespace {

template <class Arguments, void (*Kernel)(Arguments)>
void call(const void* arguments) {
  Kernel(*static_cast<const Arguments*>(arguments));
}

#define TOY(name, syncs) KernelCode{"toy_" #name, sizeof(ToyArgs), syncs, &call<ToyArgs, &toy_##name>},
#define LISTED(name, Args, syncs) \
  KernelCode{"ferry_" #name, sizeof(ferry::gpu::Args), syncs, &call<ferry::gpu::Args, &ferry::gpu::ferry_##name>},
constexpr KernelCode all[] = {FERRY_KERNELS(LISTED) TOY_KERNELS(TOY)};

}  // namespace

std::span<const KernelCode> kernel_codes() { return all; }

}  // namespace fake
