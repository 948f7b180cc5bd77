// One register to an aligned address, past the caches where the processor can.
#pragma once

#include <cstring>

#include "host/kernels/level.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ferry::inline FERRY_LEVEL {

template <class Vector>
inline void stream_vector(std::byte* to, const Vector& value) noexcept {
  static_assert(sizeof(Vector) == vector_nbytes);
#if defined(__AVX512BW__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<const __m512i&>(value));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<const __m256i&>(value));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<const __m128i&>(value));
#else
  std::memcpy(to, &value, sizeof(value));
#endif
}

}  // namespace ferry::inline FERRY_LEVEL
