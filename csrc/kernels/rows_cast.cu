// Converts rows of elements that lie side by side.
#include "kernels/hot_cast.cuh"
#include "kernels/kernel_list.hpp"
#include "kernels/work.cuh"

namespace ferry::gpu {
namespace {

// Group `item`: its row and its first element.
struct RowGroup {
  Address to;
  Address from;
  std::uint64_t first;
};

template <class Index>
FERRY_DEVICE RowGroup group_at(const RowArgs& args, Index item, std::uint32_t elements) {
  std::uint64_t row;
  if constexpr (sizeof(Index) == 4) {
    row = args.by_few_items.quotient(item);
  } else {
    row = args.by_items.quotient(item);
  }
  const std::uint64_t group = item - row * args.by_items.divisor;
  return {args.to + row * static_cast<std::uint64_t>(args.to_pitch),
          args.from + row * static_cast<std::uint64_t>(args.from_pitch), group * elements};
}

// As many elements as fill 16 bytes of the smaller type, by vectors.
template <class Pair>
struct VectorCast {
  using To = typename Pair::To;
  using From = typename Pair::From;
  static constexpr std::uint32_t smaller = sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From);
  static constexpr std::uint32_t elements = 16 / smaller;
  static constexpr std::uint32_t to_vectors = elements * sizeof(To) / 16;
  static constexpr std::uint32_t from_vectors = elements * sizeof(From) / 16;

  template <class T>
  FERRY_DEVICE static T get(const Bits128* vectors, std::uint32_t index) {
    const std::uint32_t nbyte = index * sizeof(T);
    const std::uint32_t word = vectors[nbyte / 16].word[nbyte % 16 / 4];
    if constexpr (sizeof(T) == 8) {
      return word | static_cast<T>(vectors[nbyte / 16].word[nbyte % 16 / 4 + 1]) << 32U;
    } else {
      return static_cast<T>(word >> (nbyte % 4 * 8U));
    }
  }

  FERRY_DEVICE static void convert(Address to, Address from) {
    Bits128 in[from_vectors];
    FERRY_UNROLL
    for (std::uint32_t v = 0; v < from_vectors; ++v) in[v] = load<Bits128>(from + 16 * v);
    Bits128 out[to_vectors] = {};
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < elements; ++i) {
      const std::uint32_t nbyte = i * sizeof(To);
      const auto value = static_cast<std::uint32_t>(Pair::convert(get<From>(in, i)));
      out[nbyte / 16].word[nbyte % 16 / 4] |= value << (nbyte % 4 * 8U);
    }
    FERRY_UNROLL
    for (std::uint32_t v = 0; v < to_vectors; ++v) store(to + 16 * v, out[v]);
  }
};

template <class Pair, class Index>
FERRY_DEVICE void convert_rows(const RowArgs& args) {
  using Vector = VectorCast<Pair>;
  const auto items = static_cast<Index>(args.rows * args.by_items.divisor);
  for (auto item = first_item<Index>(); item < items; item += item_step<Index>()) {
    const RowGroup at = group_at<Index>(args, item, Vector::elements);
    const Address to = at.to + at.first * sizeof(typename Pair::To);
    const Address from = at.from + at.first * sizeof(typename Pair::From);
    if (args.aligned != 0U && at.first + Vector::elements <= args.width) {
      Vector::convert(to, from);
      continue;
    }
    const std::uint64_t left = args.width - at.first;
    const auto count = static_cast<std::uint32_t>(left < Vector::elements ? left : Vector::elements);
    FERRY_NO_UNROLL
    for (std::uint32_t i = 0; i < count; ++i) {
      store<typename Pair::To>(to + i * sizeof(typename Pair::To),
                               Pair::convert(load<typename Pair::From>(from + i * sizeof(typename Pair::From))));
    }
  }
}

FERRY_DEVICE void convert_any_rows(const RowArgs& args) {
  using Index = std::uint64_t;
  const std::uint32_t to_nbytes = itemsize(static_cast<ElementType>(args.cast.to));
  const std::uint32_t from_nbytes = itemsize(static_cast<ElementType>(args.cast.from));
  const std::uint32_t elements = 16U / (to_nbytes < from_nbytes ? to_nbytes : from_nbytes);
  const Index items = args.rows * args.by_items.divisor;
  for (auto item = first_item<Index>(); item < items; item += item_step<Index>()) {
    const RowGroup at = group_at<Index>(args, item, elements);
    const std::uint64_t last = at.first + elements < args.width ? at.first + elements : args.width;
    FERRY_NO_UNROLL
    for (std::uint64_t i = at.first; i < last; ++i) {
      convert_element(args.cast, at.to + i * to_nbytes, at.from + i * from_nbytes);
    }
  }
}

}  // namespace

FERRY_KERNEL(512) ferry_rows_cast(const RowArgs args) { convert_any_rows(args); }

#define FERRY_ROWS_CAST(name, Pair)                                                                      \
  FERRY_KERNEL(512) ferry_rows_##name(const RowArgs args) {                                              \
    args.wide != 0U ? convert_rows<Pair, std::uint64_t>(args) : convert_rows<Pair, std::uint32_t>(args); \
  }
FERRY_ROWS_CAST(bfloat16_from_float32, BFloat16FromFloat32)
FERRY_ROWS_CAST(float16_from_float32, Float16FromFloat32)
FERRY_ROWS_CAST(float32_from_bfloat16, Float32FromBFloat16)
FERRY_ROWS_CAST(float32_from_float16, Float32FromFloat16)
FERRY_ROWS_CAST(float32_from_float64, Float32FromFloat64)
FERRY_ROWS_CAST(float32_from_uint8, Float32FromUInt8)
#undef FERRY_ROWS_CAST

}  // namespace ferry::gpu
