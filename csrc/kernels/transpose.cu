// Exchanges two axes by tiles in shared memory, so that both sides are read and written in lines.
//
// A tile's row is a line of 128 bytes of the source: 8 vectors of 16 bytes. Vector v of row r lies at position
// v ^ (r / elements_per_vector) % 8 of its row. The rows of one destination vector have the same quotient, and those of
// its neighbours have others; so eight lanes that write neighbouring vectors read from eight different groups of banks,
// and eight lanes that load a line write to eight. No access to shared memory meets a conflict.
#include "kernels/memory.cuh"
#include "kernels/transpose.hpp"

namespace ferry::gpu {
namespace {

inline constexpr std::uint32_t line_vectors = 8;

template <std::uint32_t size>
struct Element;
template <>
struct Element<1> {
  using Word = std::uint32_t;  // what is read at once from shared memory: four elements
};
template <>
struct Element<2> {
  using Word = std::uint32_t;
};
template <>
struct Element<4> {
  using Word = std::uint32_t;
};
template <>
struct Element<8> {
  using Word = std::uint64_t;
};
template <>
struct Element<16> {
  using Word = Bits128;
};

struct Tile {
  Address to;
  Address from;
  std::uint64_t across;  // elements that are left from here on
  std::uint64_t along;
};

FERRY_DEVICE Tile tile_of(const TransposeArgs& args, std::uint64_t number, std::uint32_t size) {
  // Along runs fastest: blocks that run together write into the same rows of the destination.
  std::uint64_t rest = args.by_tiles_along.quotient(number);
  const std::uint64_t along = (number - rest * args.by_tiles_along.divisor) * tile_along(size);
  const std::uint64_t matrix = args.by_tiles_across.quotient(rest);
  const std::uint64_t across = (rest - matrix * args.by_tiles_across.divisor) * tile_across(size);
  Tile tile{args.to + across * static_cast<std::uint64_t>(args.to_stride) + along * size,
            args.from + along * static_cast<std::uint64_t>(args.from_stride) + across * size, args.across - across,
            args.along - along};
  rest = matrix;
  FERRY_NO_UNROLL
  for (std::uint32_t a = 0; a < args.outer_count; ++a) {
    const std::uint64_t next = args.outer[a].by_extent.quotient(rest);
    const std::uint64_t here = rest - next * args.outer[a].by_extent.divisor;
    tile.to += here * static_cast<std::uint64_t>(args.outer[a].to_stride);
    tile.from += here * static_cast<std::uint64_t>(args.outer[a].from_stride);
    rest = next;
  }
  return tile;
}

template <std::uint32_t size>
struct Transpose {
  using Word = typename Element<size>::Word;
  static constexpr std::uint32_t per_vector = 16 / size;
  static constexpr std::uint32_t per_word = sizeof(Word) / size;
  static constexpr std::uint32_t across = tile_across(size);
  static constexpr std::uint32_t along = tile_along(size);
  static constexpr std::uint32_t vectors = line_vectors * along;

  FERRY_DEVICE static std::uint32_t position(std::uint32_t row, std::uint32_t vector) {
    return row * line_vectors + (vector ^ (row / per_vector) % line_vectors);
  }

  FERRY_DEVICE static Bits128 load_some(Address from, std::uint32_t nbytes) {
    Bits128 value = {};
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < 16; i += size < 4 ? size : 4) {
      if (i >= nbytes) continue;
      if constexpr (size == 1) {
        value.word[i / 4] |= static_cast<std::uint32_t>(load<std::uint8_t>(from + i)) << (i % 4 * 8U);
      } else if constexpr (size == 2) {
        value.word[i / 4] |= static_cast<std::uint32_t>(load<std::uint16_t>(from + i)) << (i % 4 * 8U);
      } else {
        value.word[i / 4] = load<std::uint32_t>(from + i);
      }
    }
    return value;
  }

  FERRY_DEVICE static void store_some(Address to, Bits128 value, std::uint32_t nbytes) {
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < 16; i += size < 4 ? size : 4) {
      if (i >= nbytes) continue;
      const std::uint32_t word = value.word[i / 4] >> (i % 4 * 8U);
      if constexpr (size == 1) {
        store(to + i, static_cast<std::uint8_t>(word));
      } else if constexpr (size == 2) {
        store(to + i, static_cast<std::uint16_t>(word));
      } else {
        store(to + i, word);
      }
    }
  }

  FERRY_DEVICE static void load_lines(const TransposeArgs& args, const Tile& from, Bits128* tile) {
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < vectors; i += transpose_threads) {
      const std::uint32_t row = (i + thread_index()) / line_vectors;
      const std::uint32_t vector = (i + thread_index()) % line_vectors;
      const std::uint64_t first = std::uint64_t{vector} * per_vector;
      if (row >= from.along || first >= from.across) continue;
      const Address at = from.from + row * static_cast<std::uint64_t>(args.from_stride) + vector * 16U;
      const std::uint64_t left = from.across - first;
      tile[position(row, vector)] = left >= per_vector ? load_parts(at, args.from_alignment)
                                                       : load_some(at, static_cast<std::uint32_t>(left) * size);
    }
  }

  // Word w of the vectors that hold the elements row, row + 1, ... of this column.
  FERRY_DEVICE static void store_columns(const TransposeArgs& args, const Tile& to, const Bits128* tile) {
    constexpr std::uint32_t row_vectors = along / per_vector;  // of a destination row
    constexpr std::uint32_t items = across / per_word * row_vectors;
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < items; i += transpose_threads) {
      const std::uint32_t item = i + thread_index();
      if (items % transpose_threads != 0 && item >= items) continue;
      // Eight vectors of a row side by side, then the next columns, then further vectors.
      const std::uint32_t panel = item / (line_vectors * (across / per_word));
      const std::uint32_t within = item % (line_vectors * (across / per_word));
      const std::uint32_t column = within / line_vectors * per_word;
      const std::uint32_t row = (panel * line_vectors + within % line_vectors) * per_vector;
      if (column >= to.across || row >= to.along) continue;
      Word words[per_vector];
      FERRY_UNROLL
      for (std::uint32_t k = 0; k < per_vector; ++k) {
        const Bits128* vector = tile + position(row + k, column / per_vector);
        words[k] = load_from<Word>(reinterpret_cast<const char*>(vector) + column % per_vector * size);
      }
      const std::uint64_t left = to.along - row;
      FERRY_UNROLL
      for (std::uint32_t c = 0; c < per_word; ++c) {
        if (column + c >= to.across) continue;
        const Address at = to.to + (column + c) * static_cast<std::uint64_t>(args.to_stride) + row * size;
        const Bits128 value = join(words, c);
        if (left >= per_vector) {
          store_parts(at, value, args.to_alignment);
        } else {
          store_some(at, value, static_cast<std::uint32_t>(left) * size);
        }
      }
    }
  }

  // Element `c` of each word, one after the other.
  FERRY_DEVICE static Bits128 join(const Word* words, std::uint32_t c) {
    if constexpr (size == 16) {
      return words[0];
    } else if constexpr (size == 8) {
      return {{static_cast<std::uint32_t>(words[0]), static_cast<std::uint32_t>(words[0] >> 32U),
               static_cast<std::uint32_t>(words[1]), static_cast<std::uint32_t>(words[1] >> 32U)}};
    } else if constexpr (size == 4) {
      return {{words[0], words[1], words[2], words[3]}};
    } else {
      constexpr std::uint32_t mask = size == 1 ? 0xFFU : 0xFFFFU;
      Bits128 value = {};
      FERRY_UNROLL
      for (std::uint32_t k = 0; k < per_vector; ++k) {
        value.word[k * size / 4] |= (words[k] >> (c * size * 8U) & mask) << (k * size % 4 * 8U);
      }
      return value;
    }
  }

  FERRY_DEVICE static void run(const TransposeArgs& args, Bits128* tile) {
    for (std::uint64_t number = block_index(); number < args.tiles; number += blocks_in_grid()) {
      const Tile at = tile_of(args, number, size);
      load_lines(args, at, tile);
      barrier();
      store_columns(args, at, tile);
      barrier();  // before the next tile takes its place
    }
  }
};

}  // namespace

#define FERRY_TRANSPOSE(size)                                          \
  FERRY_KERNEL(256) ferry_transpose_##size(const TransposeArgs args) { \
    FERRY_SHARED(Bits128, tile, [line_vectors * tile_along(size)]);    \
    Transpose<size>::run(args, tile);                                  \
  }
FERRY_TRANSPOSE(1)
FERRY_TRANSPOSE(2)
FERRY_TRANSPOSE(4)
FERRY_TRANSPOSE(8)
FERRY_TRANSPOSE(16)
#undef FERRY_TRANSPOSE

}  // namespace ferry::gpu
