// Rows between float16 and float32, by the processor's own conversions where the level has them. Those round as we do,
// but keep the upper bits of a NaN's payload, where we keep none.
#pragma once

#include "host/kernels/cast_loop.hpp"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace ferry::inline FERRY_LEVEL {

#if defined(__AVX512F__)
inline constexpr std::int64_t halves_at_once = 16;
inline constexpr __mmask16 every_lane = 0xFFFF;  // the forms without a mask warn of the lanes they leave undefined

inline void widen_vector(std::byte* to, const std::byte* from) noexcept {
  const __m512 value = _mm512_maskz_cvtph_ps(every_lane, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i sign = _mm512_set1_epi32(std::bit_cast<std::int32_t>(float_sign));
  const __m512i nan = _mm512_set1_epi32(std::bit_cast<std::int32_t>(float_nan));
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i plain = _mm512_or_si512(_mm512_and_si512(bits, sign), nan);
  _mm512_storeu_si512(to, _mm512_mask_mov_epi32(bits, is_nan, plain));
}

inline void narrow_vector(std::byte* to, const std::byte* from) noexcept {
  const __m512i bits = _mm512_loadu_si512(from);
  const __m512 value = _mm512_castsi512_ps(bits);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i sign = _mm512_set1_epi32(std::bit_cast<std::int32_t>(float_sign));
  const __m512i nan = _mm512_set1_epi32(std::bit_cast<std::int32_t>(float_nan));
  const __m512i plain = _mm512_or_si512(_mm512_and_si512(bits, sign), nan);
  const __m512 number = _mm512_castsi512_ps(_mm512_mask_mov_epi32(bits, is_nan, plain));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtps_ph(every_lane, number, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__F16C__)
inline constexpr std::int64_t halves_at_once = 8;

// A NaN without payload, of the sign of `value`, where that is a NaN.
inline __m256 with_plain_nan(__m256 value) noexcept {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  const __m256 nan = _mm256_set1_ps(std::bit_cast<float>(float_nan));
  const __m256 plain = _mm256_or_ps(_mm256_and_ps(value, sign), nan);
  return _mm256_blendv_ps(value, plain, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
}

inline void widen_vector(std::byte* to, const std::byte* from) noexcept {
  const __m256 value = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  _mm256_storeu_ps(reinterpret_cast<float*>(to), with_plain_nan(value));
}

inline void narrow_vector(std::byte* to, const std::byte* from) noexcept {
  const __m256 value = with_plain_nan(_mm256_loadu_ps(reinterpret_cast<const float*>(from)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}
#endif

#if defined(__F16C__)
// Whole vectors, of which the last one may take up items of the one before; fewer items begin a vector of their own.
template <class To, class From, std::int64_t lanes, class Vector>
inline void convert_vectors(std::byte* to, const std::byte* from, std::int64_t count, Vector&& vector) noexcept {
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) vector(to + i * size_of<To>, from + i * size_of<From>);
  if (i == count) return;
  if (count > lanes) return vector(to + (count - lanes) * size_of<To>, from + (count - lanes) * size_of<From>);
  alignas(64) std::byte source[lanes * size_of<From>]{};
  alignas(64) std::byte result[lanes * size_of<To>];
  std::memcpy(source, from, static_cast<std::size_t>(count * size_of<From>));
  vector(result, source);
  std::memcpy(to, result, static_cast<std::size_t>(count * size_of<To>));
}

inline void widen_halves(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  convert_vectors<float, Float16, halves_at_once>(to, from, count, widen_vector);
}

inline void narrow_halves(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  convert_vectors<Float16, float, halves_at_once>(to, from, count, narrow_vector);
}
#else
inline constexpr Convert widen_halves = convert_items<float, Float16>;
inline constexpr Convert narrow_halves = convert_items<Float16, float>;
#endif

}  // namespace ferry::inline FERRY_LEVEL
