// The words that Python uses for our enumerations.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "transfer/plan.hpp"

namespace ferry::bind {

template <class Enum, std::size_t Count>
struct Names {
  std::array<std::pair<std::string_view, Enum>, Count> pairs;

  [[nodiscard]] Enum value(std::string_view name) const {
    for (const auto& [word, value] : pairs) {
      if (word == name) return value;
    }
    throw std::invalid_argument("unknown word: " + std::string(name));
  }
  [[nodiscard]] std::string name(Enum wanted) const {
    for (const auto& [word, value] : pairs) {
      if (value == wanted) return std::string(word);
    }
    throw std::invalid_argument("unnamed value");
  }
};

inline constexpr Names<Casting, 6> casting_names{{{{"no", Casting::no},
                                                   {"equiv", Casting::equiv},
                                                   {"safe", Casting::safe},
                                                   {"same_kind", Casting::same_kind},
                                                   {"unsafe", Casting::unsafe},
                                                   {"same_value", Casting::same_value}}}};
inline constexpr Names<Order, 4> order_names{
    {{{"K", Order::keep}, {"C", Order::c}, {"F", Order::fortran}, {"A", Order::any}}}};
inline constexpr Names<Target, 2> target_names{{{{"numpy", Target::numpy}, {"torch", Target::torch}}}};
inline constexpr Names<CopyPolicy, 4> copy_names{{{{"if_needed", CopyPolicy::if_needed},
                                                   {"always", CopyPolicy::always},
                                                   {"never", CopyPolicy::never},
                                                   {"lazy", CopyPolicy::lazy}}}};
inline constexpr Names<ReadOnlyPolicy, 3> read_only_names{
    {{{"copy", ReadOnlyPolicy::copy}, {"share", ReadOnlyPolicy::share}, {"raise", ReadOnlyPolicy::raise}}}};
inline constexpr Names<Path, 3> path_names{{{{"view", Path::view}, {"lazy", Path::lazy}, {"copy", Path::copy}}}};

[[nodiscard]] inline DType named_dtype(std::string_view name) {
  if (const auto dtype = dtype_from_name(name)) return *dtype;
  throw std::invalid_argument("unknown dtype: " + std::string(name));
}

}  // namespace ferry::bind
