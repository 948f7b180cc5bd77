// Float32 as a step on the way: it holds each value of the small formats. What it does not hold is rounded to odd
// there, so that only a second rounding counts.
#pragma once

#include "host/kernels/half_loop.hpp"

namespace ferry::inline FERRY_LEVEL {

template <class To>
inline constexpr Convert narrow_items = convert_items<To, float>;
template <>
inline constexpr Convert narrow_items<Float16> = narrow_halves;

template <class From>
inline constexpr Convert widen_items = convert_items<float, From>;
template <>
inline constexpr Convert widen_items<Float16> = widen_halves;

template <class From>
inline constexpr bool needs_odd = std::is_same_v<From, double> || (std::is_integral_v<From> && sizeof(From) >= 4);

#if defined(__AVX512DQ__)
inline constexpr __mmask8 all_doubles = 0xFF;
inline constexpr int cut_off = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;

// Cut off, with the last bit set where that changed the value.
inline void odd_vector(std::byte* to, __m512d value) noexcept {
  const __m256 cut = _mm512_maskz_cvt_roundpd_ps(all_doubles, value, cut_off);
  const __mmask8 changed = _mm512_cmp_pd_mask(_mm512_maskz_cvtps_pd(all_doubles, cut), value, _CMP_NEQ_UQ);
  const __m256i bits = _mm256_castps_si256(cut);
  const __m256i odd = _mm256_mask_or_epi32(bits, changed, bits, _mm256_set1_epi32(1));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), odd);
}

template <class From>
inline __m512d to_odd_doubles(const std::byte* from) noexcept {
  if constexpr (std::is_same_v<From, double>) {
    return _mm512_loadu_pd(from);
  } else {
    const __m512i value = _mm512_loadu_si512(from);
    __m512d cut;
    __m512i back;
    if constexpr (std::is_signed_v<From>) {
      cut = _mm512_maskz_cvt_roundepi64_pd(all_doubles, value, cut_off);
      back = _mm512_maskz_cvttpd_epi64(all_doubles, cut);
    } else {
      cut = _mm512_maskz_cvt_roundepu64_pd(all_doubles, value, cut_off);
      back = _mm512_maskz_cvttpd_epu64(all_doubles, cut);
    }
    const __m512i bits = _mm512_castpd_si512(cut);
    const __mmask8 changed = _mm512_cmpneq_epi64_mask(back, value);
    return _mm512_castsi512_pd(_mm512_mask_or_epi64(bits, changed, bits, _mm512_set1_epi64(1)));
  }
}

template <class From>
[[gnu::noinline]] void convert_to_odd(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  if constexpr (sizeof(From) == sizeof(double)) {
    convert_vectors<float, From, 8>(to, from, count, [](std::byte* vector_to, const std::byte* vector_from) {
      odd_vector(vector_to, to_odd_doubles<From>(vector_from));
    });
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      put(to + i * size_of<float>, to_odd_float(get<From>(from + i * size_of<From>)));
  }
}
#else
template <class From>
[[gnu::noinline]] void convert_to_odd(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i)
    put(to + i * size_of<float>, to_odd_float(get<From>(from + i * size_of<From>)));
}
#endif

// To what a later rounding to a small format, but not float32 itself, may start from.
template <class From>
constexpr Convert to_odd_float_items() noexcept {
  if constexpr (needs_odd<From>) {
    return convert_to_odd<From>;
  } else {
    return widen_items<From>;
  }
}

template <class Visit>
MoveRow with_real(DType dtype, Visit&& visit) noexcept {
  if (dtype == DType::float32) return visit(std::type_identity<float>{});
  if (dtype == DType::float64) return visit(std::type_identity<double>{});
  if (const MoveRow row = with_integer(dtype, visit); row != nullptr) return row;
  return with_small(dtype, visit);
}

}  // namespace ferry::inline FERRY_LEVEL
