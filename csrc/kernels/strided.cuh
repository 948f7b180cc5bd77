// Where an item of a strided copy lies on both sides, and the loops over items.
#pragma once

#include "kernels/hot_cast.cuh"
#include "kernels/strided.hpp"
#include "kernels/work.cuh"

namespace ferry::gpu {

struct Places {
  Address to;
  Address from;
};

// Of `count` items, `step` apart; those behind the last item get places that nobody uses. Every axis but the last
// divides; the last one takes what is left. The loop over axes is not unrolled: what it would save is lost again to
// fetching instructions.
template <std::uint32_t count, class Index>
FERRY_DEVICE void find_places(const StridedArgs& args, Index first, Index step, Places* places) {
  Index rest[count];
  FERRY_UNROLL
  for (std::uint32_t i = 0; i < count; ++i) {
    rest[i] = first + i * step;
    places[i] = {args.to, args.from};
  }
  FERRY_NO_UNROLL
  for (std::uint32_t a = 0; a < args.axis_count; ++a) {
    const StridedAxis& axis = args.axes[a];
    const bool is_last = a + 1 == args.axis_count;
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < count; ++i) {
      Index here = rest[i];
      if (!is_last) {
        if constexpr (sizeof(Index) == 4) {
          rest[i] = axis.by_small_extent.quotient(rest[i]);
          here -= rest[i] * axis.by_small_extent.divisor;
        } else {
          rest[i] = axis.by_extent.quotient(rest[i]);
          here -= rest[i] * axis.by_extent.divisor;
        }
      }
      places[i].to += here * static_cast<std::uint64_t>(axis.to_stride);
      places[i].from += here * static_cast<std::uint64_t>(axis.from_stride);
    }
  }
}

struct SameBits {
  template <class T>
  struct Of {
    using To = T;
    using From = T;
    FERRY_DEVICE static T convert(T value) { return value; }
  };
};

// All loads of a round are under way before its first store.
template <class Pair, std::uint32_t at_once, class Index>
FERRY_DEVICE void copy_items(const StridedArgs& args) {
  const auto count = static_cast<Index>(args.count);
  const auto step = item_step<Index>();
  for (auto first = first_item<Index>(); first < count; first += at_once * step) {
    Places places[at_once];
    find_places<at_once>(args, first, step, places);
    typename Pair::From values[at_once];
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < at_once; ++i) {
      if (first + i * step < count) values[i] = load<typename Pair::From>(places[i].from);
    }
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < at_once; ++i) {
      if (first + i * step < count) store<typename Pair::To>(places[i].to, Pair::convert(values[i]));
    }
  }
}

template <class Pair>
FERRY_DEVICE void copy_strided(const StridedArgs& args) {
  if (args.wide != 0U) {
    copy_items<Pair, items_at_once, std::uint64_t>(args);
  } else {
    copy_items<Pair, items_at_once, std::uint32_t>(args);
  }
}

// Slower and much shorter: for the kernels that are large already.
FERRY_DEVICE void convert_strided(const StridedArgs& args) {
  for (auto item = first_item<std::uint64_t>(); item < args.count; item += item_step<std::uint64_t>()) {
    Places places;
    find_places<1>(args, item, std::uint64_t{0}, &places);
    convert_element(args.cast, places.to, places.from);
  }
}

}  // namespace ferry::gpu
