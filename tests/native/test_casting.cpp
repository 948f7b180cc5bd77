#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "transfer/casting.hpp"

namespace ferry {
namespace {

// What codes beside the ordinary ones a small floating format has.
enum class Special { ieee, only_nan_at_the_top, nan_for_minus_zero, none };

struct Format {
  DType dtype;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Special special;
};

constexpr std::array<Format, 13> small_formats{{
    {DType::float16, 5, 10, 15, Special::ieee},
    {DType::bfloat16, 8, 7, 127, Special::ieee},
    {DType::float8_e3m4, 3, 4, 3, Special::ieee},
    {DType::float8_e4m3, 4, 3, 7, Special::ieee},
    {DType::float8_e5m2, 5, 2, 15, Special::ieee},
    {DType::float8_e4m3fn, 4, 3, 7, Special::only_nan_at_the_top},
    {DType::float8_e4m3b11fnuz, 4, 3, 11, Special::nan_for_minus_zero},
    {DType::float8_e4m3fnuz, 4, 3, 8, Special::nan_for_minus_zero},
    {DType::float8_e5m2fnuz, 5, 2, 16, Special::nan_for_minus_zero},
    {DType::float6_e2m3fn, 2, 3, 1, Special::none},
    {DType::float6_e3m2fn, 3, 2, 3, Special::none},
    {DType::float4_e2m1fn, 2, 1, 1, Special::none},
    {DType::float4_e2m1fn_x2, 2, 1, 1, Special::none},
}};

// All values of a dtype, sorted, and whether NaN is among them.
struct Values {
  DType dtype;
  bool is_floating;
  std::vector<double> numbers;
  bool has_nan = false;

  [[nodiscard]] bool contain(const Values& other) const {
    return (has_nan || !other.has_nan) &&
           std::includes(numbers.begin(), numbers.end(), other.numbers.begin(), other.numbers.end());
  }
};

Values finished(Values values) {
  std::sort(values.numbers.begin(), values.numbers.end());
  values.numbers.erase(std::unique(values.numbers.begin(), values.numbers.end()), values.numbers.end());
  return values;
}

Values values_of(const Format& format) {
  Values values{format.dtype, true, {}, format.special != Special::none};
  const int top_exponent = (1 << format.exponent_bits) - 1;
  const int top_mantissa = (1 << format.mantissa_bits) - 1;
  for (int exponent = 0; exponent <= top_exponent; ++exponent) {
    for (int mantissa = 0; mantissa <= top_mantissa; ++mantissa) {
      if (exponent == top_exponent) {
        if (format.special == Special::only_nan_at_the_top && mantissa == top_mantissa) continue;
        if (format.special == Special::ieee && mantissa > 0) continue;
      }
      const int leading = exponent > 0 ? 1 << format.mantissa_bits : 0;
      double value = std::ldexp(leading + mantissa, std::max(exponent, 1) - format.bias - format.mantissa_bits);
      if (exponent == top_exponent && format.special == Special::ieee) value = std::numeric_limits<double>::infinity();
      values.numbers.insert(values.numbers.end(), {value, -value});
    }
  }
  return finished(values);
}

template <class T>
Values values_of_integer(DType dtype, int bits) {
  Values values{dtype, false, {}};
  const int low = std::numeric_limits<T>::is_signed ? -(1 << (bits - 1)) : 0;
  for (int i = 0; i < 1 << bits; ++i) values.numbers.push_back(low + i);
  return finished(values);
}

// Every dtype of at most 16 bits.
std::vector<Values> enumerated() {
  std::vector<Values> all;
  for (const Format& format : small_formats) all.push_back(values_of(format));
  Values powers{DType::float8_e8m0fnu, true, {}, true};
  for (int exponent = -127; exponent <= 127; ++exponent) powers.numbers.push_back(std::ldexp(1.0, exponent));
  all.push_back(finished(powers));
  all.push_back(values_of_integer<unsigned>(DType::bool_, 1));
  for (const auto& [dtype, bits] :
       {std::pair{DType::uint1, 1}, {DType::uint2, 2}, {DType::uint4, 4}, {DType::uint8, 8}, {DType::uint16, 16}}) {
    all.push_back(values_of_integer<unsigned>(dtype, bits));
  }
  for (const auto& [dtype, bits] :
       {std::pair{DType::int1, 1}, {DType::int2, 2}, {DType::int4, 4}, {DType::int8, 8}, {DType::int16, 16}}) {
    all.push_back(values_of_integer<int>(dtype, bits));
  }
  return all;
}

std::string_view name(DType dtype) { return info(dtype).name; }

TEST(HoldsEveryValue, AgreesWithTheEnumeratedValuesOfEverySmallDType) {
  const auto all = enumerated();
  ASSERT_EQ(all.size(), 25U);
  for (const Values& to : all) {
    for (const Values& from : all) {
      // NumPy's rule: a number is never safely a bool, nor a floating number an integer, whatever their values.
      const bool kinds_allow =
          (to.dtype != DType::bool_ || from.dtype == DType::bool_) && (to.is_floating || !from.is_floating);
      const bool expected = to.dtype == from.dtype || (kinds_allow && to.contain(from));
      EXPECT_EQ(holds_every_value(to.dtype, from.dtype), expected) << name(from.dtype) << " to " << name(to.dtype);
    }
  }
}

TEST(HoldsEveryValue, AgreesWithTheEnumeratedValuesOfTheLargerTypes) {
  for (const Values& from : enumerated()) {
    bool in_float = true;
    for (const double value : from.numbers)
      in_float = in_float && static_cast<double>(static_cast<float>(value)) == value;
    EXPECT_EQ(holds_every_value(DType::float32, from.dtype), in_float) << name(from.dtype);
    EXPECT_TRUE(holds_every_value(DType::float64, from.dtype)) << name(from.dtype);
    for (const DType large :
         {DType::float32, DType::float64, DType::uint32, DType::int32, DType::uint64, DType::int64}) {
      EXPECT_FALSE(holds_every_value(from.dtype, large)) << name(large) << " to " << name(from.dtype);
    }
  }
}

// np.can_cast(row, column, "safe"), as NumPy's documentation prints it.
constexpr std::array<DType, 14> native{
    DType::bool_, DType::uint8, DType::uint16,  DType::uint32,  DType::uint64,  DType::int8,      DType::int16,
    DType::int32, DType::int64, DType::float16, DType::float32, DType::float64, DType::complex64, DType::complex128};
constexpr std::array<std::string_view, 14> safe_in_numpy{
    "yyyyyyyyyyyyyy",  // bool
    ".yyyy.yyyyyyyy",  // uint8
    "..yyy..yy.yyyy",  // uint16
    "...yy...y..y.y",  // uint32
    "....y......y.y",  // uint64
    ".....yyyyyyyyy",  // int8
    "......yyy.yyyy",  // int16
    ".......yy..y.y",  // int32
    "........y..y.y",  // int64
    ".........yyyyy",  // float16
    "..........yyyy",  // float32
    "...........y.y",  // float64
    "............yy",  // complex64
    ".............y",  // complex128
};

TEST(CanCast, IsSafeWhereNumPySaysSo) {
  for (std::size_t from = 0; from < native.size(); ++from) {
    for (std::size_t to = 0; to < native.size(); ++to) {
      EXPECT_EQ(can_cast(native[from], native[to], Casting::safe), safe_in_numpy[from][to] == 'y')
          << name(native[from]) << " to " << name(native[to]);
    }
  }
}

constexpr std::array<DType, dtype_count> every_dtype = [] {
  std::array<DType, dtype_count> all{};
  for (std::size_t i = 0; i < dtype_count; ++i) all[i] = static_cast<DType>(i);
  return all;
}();

TEST(CanCast, StaysWithinTheKindOrGoesToALaterOne) {
  // Rows from, columns to: bool, unsigned, signed, floating, complex.
  constexpr std::array<std::string_view, 5> same_kind{".yyyy", ".yyyy", "..yyy", "...yy", "....y"};
  for (const DType from : every_dtype) {
    for (const DType to : every_dtype) {
      const char allowed =
          same_kind[static_cast<std::size_t>(info(from).kind)][static_cast<std::size_t>(info(to).kind)];
      EXPECT_EQ(can_cast(from, to, Casting::same_kind), from == to || allowed == 'y')
          << name(from) << " to " << name(to);
    }
  }
}

TEST(CanCast, LooksOnlyForIdentityUnderNoAndEquiv) {
  for (const DType from : every_dtype) {
    for (const DType to : every_dtype) {
      EXPECT_EQ(can_cast(from, to, Casting::no), from == to);
      EXPECT_EQ(can_cast(from, to, Casting::equiv), from == to);
    }
  }
}

TEST(CanCast, AllowsEveryPairWhereNothingIsPromisedOrValuesAreChecked) {
  for (const DType from : every_dtype) {
    for (const DType to : every_dtype) {
      EXPECT_TRUE(can_cast(from, to, Casting::unsafe));
      EXPECT_TRUE(can_cast(from, to, Casting::same_value));
    }
  }
}

TEST(HoldsEveryValue, TreatsAComplexNumberAsTwoOfItsParts) {
  const std::array<std::pair<DType, DType>, 3> parts{
      {{DType::complex32, DType::float16}, {DType::complex64, DType::float32}, {DType::complex128, DType::float64}}};
  for (const auto& [to, to_part] : parts) {
    for (const auto& [from, from_part] : parts) {
      EXPECT_EQ(holds_every_value(to, from), holds_every_value(to_part, from_part)) << name(from) << " to " << name(to);
    }
    for (const DType from : every_dtype) {
      if (info(from).kind == Kind::complex) continue;
      EXPECT_EQ(holds_every_value(to, from), holds_every_value(to_part, from)) << name(from) << " to " << name(to);
      EXPECT_FALSE(holds_every_value(from, to)) << name(to) << " to " << name(from);
    }
  }
}

TEST(NativeDType, HoldsEveryValueOfWhatItReplaces) {
  for (const DType dtype : every_dtype) EXPECT_TRUE(holds_every_value(native_dtype(dtype), dtype)) << name(dtype);
}

}  // namespace
}  // namespace ferry
