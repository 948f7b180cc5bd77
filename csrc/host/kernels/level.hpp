// What the kernel sources of one processor level share. FERRY_LEVEL names the level: each is compiled with its own
// instruction set, into a namespace of its own. Whatever these sources use that is not inlined must stand in that
// namespace: else the linker could give all levels the code of the highest.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef FERRY_LEVEL
#define FERRY_LEVEL portable
#endif

namespace ferry::inline FERRY_LEVEL {

// The widest vector that the level moves at once, in bytes.
#if defined(__AVX512BW__)
inline constexpr int vector_nbytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_nbytes = 32;
#else
inline constexpr int vector_nbytes = 16;
#endif

}  // namespace ferry::inline FERRY_LEVEL
