// All kernels: X(name, arguments, syncs). The function is called ferry_<name>; `syncs` tells whether its threads meet
// at barriers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/gather.hpp"
#include "kernels/image.hpp"
#include "kernels/rows.hpp"
#include "kernels/strided.hpp"
#include "kernels/transpose.hpp"

// The casts that are worth kernels of their own: Y(to, from).
#define FERRY_HOT_CASTS(Y) \
  Y(bfloat16, float32)     \
  Y(float16, float32)      \
  Y(float32, bfloat16)     \
  Y(float32, float16)      \
  Y(float32, float64)      \
  Y(float32, uint8)

// Those names read to_from, as in rows_bfloat16_from_float32.
#define FERRY_KERNELS(X)                               \
  X(rows, RowArgs, false)                              \
  X(rows_cast, RowArgs, false)                         \
  X(rows_bfloat16_from_float32, RowArgs, false)        \
  X(rows_float16_from_float32, RowArgs, false)         \
  X(rows_float32_from_bfloat16, RowArgs, false)        \
  X(rows_float32_from_float16, RowArgs, false)         \
  X(rows_float32_from_float64, RowArgs, false)         \
  X(rows_float32_from_uint8, RowArgs, false)           \
  X(strided_1, StridedArgs, false)                     \
  X(strided_2, StridedArgs, false)                     \
  X(strided_4, StridedArgs, false)                     \
  X(strided_8, StridedArgs, false)                     \
  X(strided_16, StridedArgs, false)                    \
  X(strided_cast, StridedArgs, false)                  \
  X(strided_bfloat16_from_float32, StridedArgs, false) \
  X(strided_float16_from_float32, StridedArgs, false)  \
  X(strided_float32_from_bfloat16, StridedArgs, false) \
  X(strided_float32_from_float16, StridedArgs, false)  \
  X(strided_float32_from_float64, StridedArgs, false)  \
  X(strided_float32_from_uint8, StridedArgs, false)    \
  X(strided_store, StridedStoreArgs, true)             \
  X(strided_cast_store, StridedStoreArgs, true)        \
  X(transpose_1, TransposeArgs, true)                  \
  X(transpose_2, TransposeArgs, true)                  \
  X(transpose_4, TransposeArgs, true)                  \
  X(transpose_8, TransposeArgs, true)                  \
  X(transpose_16, TransposeArgs, true)                 \
  X(gather_inline, GatherInlineArgs, false)            \
  X(gather_table, GatherTableArgs, false)              \
  X(scatter_inline, GatherInlineArgs, false)           \
  X(scatter_table, GatherTableArgs, false)             \
  X(gather_store_inline, GatherStoreInlineArgs, true)  \
  X(gather_store_table, GatherStoreTableArgs, true)    \
  X(gather_slot_inline, GatherSlotInlineArgs, true)    \
  X(gather_slot_table, GatherSlotTableArgs, true)      \
  X(image_float32, ImageArgs, false)                   \
  X(image_float16, ImageArgs, false)                   \
  X(image_bfloat16, ImageArgs, false)

namespace ferry::gpu {

enum class Kernel : std::uint8_t {
#define X(name, Args, syncs) name,
  FERRY_KERNELS(X)
#undef X
};

struct KernelInfo {
  const char* symbol;
  std::size_t argument_nbytes;
  bool syncs;
};

#define X(name, Args, syncs) KernelInfo{"ferry_" #name, sizeof(Args), syncs},
inline constexpr std::array kernel_table{FERRY_KERNELS(X)};
#undef X
inline constexpr std::size_t kernel_count = kernel_table.size();

constexpr const KernelInfo& info(Kernel kernel) noexcept { return kernel_table[static_cast<std::size_t>(kernel)]; }

}  // namespace ferry::gpu
