#include "host/block_cast.hpp"

#include <array>
#include <cmath>
#include <complex>
#include <type_traits>

#include "host/exact.hpp"

namespace ferry {
namespace {

using Complex = std::complex<double>;

template <class T>
inline constexpr bool is_complex = std::is_same_v<T, Complex>;

// What a conversion must know of the destination beyond its carrier.
template <class To>
struct Target;

template <class Int>
  requires std::is_integral_v<Int>
struct Target<Int> {
  explicit Target(int bits) noexcept {
    const int digits = std::is_signed_v<Int> ? bits - 1 : bits;
    range.high = digits == 0 ? Int{0} : static_cast<Int>(~std::uint64_t{0} >> (64 - digits));
    range.low = std::is_signed_v<Int> ? static_cast<Int>(-range.high - 1) : Int{0};
    beyond = std::ldexp(1.0, digits);
  }
  IntegerRange<Int> range;
  double beyond;
};

template <>
struct Target<double> {
  explicit Target(int bits) noexcept : narrow(bits < 64) {}
  bool narrow;  // the store rounds once more
};

template <>
struct Target<Complex> {
  explicit Target(int bits) noexcept : part(bits / 2) {}
  Target<double> part;
};

template <class To, class From>
To convert(From value, const Target<To>& target) noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_complex<From>) {
    return convert(value.real(), target);
  } else if constexpr (is_complex<To>) {
    return {convert(value, target.part), 0.0};
  } else if constexpr (std::is_same_v<To, double>) {
    return target.narrow ? to_double_odd(value) : static_cast<double>(value);
  } else if constexpr (std::is_same_v<From, double>) {
    return to_integer(value, target.range, target.beyond);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
void cast_block(const Block& from, Block& to, std::int64_t count, int bits) noexcept {
  const From* source = from.as<From>();
  To* destination = to.as<To>();
  const Target<To> target(bits);
  for (std::int64_t i = 0; i < count; ++i) destination[i] = convert(source[i], target);
}

template <class From>
void cast_to_boolean(const Block& from, Block& to, std::int64_t count, int) noexcept {
  const From* source = from.as<From>();
  auto* destination = to.as<std::uint64_t>();
  for (std::int64_t i = 0; i < count; ++i) destination[i] = source[i] != From{} ? 1U : 0U;
}

template <class A, class B>
std::int64_t first_difference(const Block& a, const Block& b, std::int64_t count) noexcept {
  const A* left = a.as<A>();
  const B* right = b.as<B>();
  for (std::int64_t i = 0; i < count; ++i) {
    if (!same_value(left[i], right[i])) return i;
  }
  return -1;
}

// Calls `visit` with a null pointer of the type that `carrier` names.
template <class Visit>
auto with_carrier(Carrier carrier, Visit&& visit) noexcept {
  switch (carrier) {
    case Carrier::int64:
      return visit(static_cast<std::int64_t*>(nullptr));
    case Carrier::uint64:
      return visit(static_cast<std::uint64_t*>(nullptr));
    case Carrier::float64:
      return visit(static_cast<double*>(nullptr));
    default:
      return visit(static_cast<Complex*>(nullptr));
  }
}

template <class T>
void negate(Block& block, std::int64_t count) noexcept {
  T* values = block.as<T>();
  for (std::int64_t i = 0; i < count; ++i) values[i] = -values[i];
}

template <>
void negate<std::int64_t>(Block& block, std::int64_t count) noexcept {
  auto* values = block.as<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = static_cast<std::int64_t>(-static_cast<std::uint64_t>(values[i]));
}

void conjugate(Block& block, std::int64_t count) noexcept {
  auto* values = block.as<Complex>();
  for (std::int64_t i = 0; i < count; ++i) values[i] = std::conj(values[i]);
}

}  // namespace

BlockCast::BlockCast(DType destination, DType source) noexcept : bits_(info(destination).value_bits) {
  const Carrier from = element_io(source, false).carrier;
  const Carrier to = element_io(destination, false).carrier;
  cast_ = with_carrier(from, [&]<class From>(From*) -> Cast {
    if (destination == DType::bool_) return cast_to_boolean<From>;
    return with_carrier(to, []<class To>(To*) -> Cast { return cast_block<To, From>; });
  });
}

CompareBlocks block_comparison(Carrier a, Carrier b) noexcept {
  return with_carrier(a, [&]<class A>(A*) -> CompareBlocks {
    return with_carrier(b, []<class B>(B*) -> CompareBlocks { return first_difference<A, B>; });
  });
}

void apply_bits(const TensorRef& tensor, Block& block, std::int64_t count) noexcept {
  const DTypeInfo& type = info(tensor.dtype);
  const ElementIO io = element_io(tensor.dtype, false);
  if (tensor.conjugated && type.kind == Kind::complex) conjugate(block, count);
  if (!tensor.negated) return;
  with_carrier(io.carrier, [&]<class T>(T*) { negate<T>(block, count); });
  const bool symmetric = type.kind == Kind::complex || (type.kind == Kind::floating && type.numpy_native);
  if (symmetric) return;
  // The negative within the type itself: through the type's own bits.
  std::array<std::byte, static_cast<std::size_t>(block_elements) * sizeof(std::uint64_t)> bits;
  io.store(bits.data(), type.itemsize, count, block);
  io.load(bits.data(), type.itemsize, count, block);
}

}  // namespace ferry
