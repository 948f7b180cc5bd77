// Loads and stores of a known width, and copies of up to 16 bytes of any alignment.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/arguments.hpp"
#include "kernels/platform.cuh"

namespace ferry::gpu {

struct alignas(16) Bits128 {
  std::uint32_t word[4];
};

// Compilers for the host must not assume that memory has one type: bytes are read here as what they are convenient as.
template <class T>
FERRY_DEVICE T load_from(const void* at) {
  return *static_cast<const T*>(at);
}
template <class T>
FERRY_DEVICE void store_to(void* at, T value) {
  *static_cast<T*>(at) = value;
}

template <class T>
FERRY_DEVICE T load(Address at) {
  return load_from<T>(reinterpret_cast<const void*>(at));
}
template <class T>
FERRY_DEVICE void store(Address at, T value) {
  store_to<T>(reinterpret_cast<void*>(at), value);
}

#if defined(__CUDACC__)
// Left to the compiler, four words are sometimes moved one by one.
template <>
FERRY_DEVICE Bits128 load<Bits128>(Address at) {
  Bits128 value;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.word[0]), "=r"(value.word[1]), "=r"(value.word[2]), "=r"(value.word[3])
               : "l"(at)
               : "memory");
  return value;
}
template <>
FERRY_DEVICE void store<Bits128>(Address at, Bits128 value) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(value.word[0]), "r"(value.word[1]),
               "r"(value.word[2]), "r"(value.word[3])
               : "memory");
}
#endif

template <class To, class From>
FERRY_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

// 16 bytes by parts of `alignment` bytes, a power of two that divides the address.
FERRY_DEVICE Bits128 load_parts(Address from, std::uint32_t alignment) {
  if (alignment >= 16) return load<Bits128>(from);
  Bits128 value;
  FERRY_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (alignment >= 4) {
      value.word[i] = load<std::uint32_t>(from + 4 * i);
    } else if (alignment == 2) {
      value.word[i] =
          load<std::uint16_t>(from + 4 * i) | static_cast<std::uint32_t>(load<std::uint16_t>(from + 4 * i + 2)) << 16U;
    } else {
      std::uint32_t word = 0;
      FERRY_UNROLL
      for (std::uint32_t b = 0; b < 4; ++b) {
        word |= static_cast<std::uint32_t>(load<std::uint8_t>(from + 4 * i + b)) << (8U * b);
      }
      value.word[i] = word;
    }
  }
  return value;
}

FERRY_DEVICE void store_parts(Address to, Bits128 value, std::uint32_t alignment) {
  if (alignment >= 16) {
    store<Bits128>(to, value);
    return;
  }
  FERRY_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (alignment >= 4) {
      store<std::uint32_t>(to + 4 * i, value.word[i]);
    } else if (alignment == 2) {
      store<std::uint16_t>(to + 4 * i, static_cast<std::uint16_t>(value.word[i]));
      store<std::uint16_t>(to + 4 * i + 2, static_cast<std::uint16_t>(value.word[i] >> 16U));
    } else {
      FERRY_UNROLL
      for (std::uint32_t b = 0; b < 4; ++b) {
        store<std::uint8_t>(to + 4 * i + b, static_cast<std::uint8_t>(value.word[i] >> (8U * b)));
      }
    }
  }
}

template <class T>
FERRY_DEVICE void copy_units(Address to, Address from, std::uint32_t nbytes) {
  FERRY_NO_UNROLL
  for (std::uint32_t at = 0; at < nbytes; at += sizeof(T)) store<T>(to + at, load<T>(from + at));
}

// The largest power of two, up to 16, that divides the number.
FERRY_DEVICE std::uint32_t alignment_of(std::uint64_t number) {
  const auto low = static_cast<std::uint32_t>(number) | 16U;
  return low & (0U - low);
}

// Less than 16 bytes.
FERRY_DEVICE void copy_part(Address to, Address from, std::uint32_t nbytes) {
  const std::uint32_t alignment = alignment_of(to | from | nbytes);
  if (alignment >= 4) {
    copy_units<std::uint32_t>(to, from, nbytes);
  } else if (alignment == 2) {
    copy_units<std::uint16_t>(to, from, nbytes);
  } else {
    copy_units<std::uint8_t>(to, from, nbytes);
  }
}

// What lies in the given one of the windows of 16 aligned bytes that the destination runs through.
FERRY_DEVICE void copy_window(Address to, Address from, std::uint64_t nbytes, std::uint64_t window) {
  const std::uint64_t phase = to & 15U;
  const std::uint64_t begin = window == 0 ? 0 : window * 16 - phase;
  const std::uint64_t end = window * 16 + 16 - phase;
  if (begin >= nbytes) return;
  if (end - begin == 16 && end <= nbytes) {
    store<Bits128>(to + begin, load_parts(from + begin, alignment_of(from + begin)));
  } else {
    copy_part(to + begin, from + begin, static_cast<std::uint32_t>((end < nbytes ? end : nbytes) - begin));
  }
}

}  // namespace ferry::gpu
