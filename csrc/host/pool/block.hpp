// Raw memory that we own, in sizes near what was asked for.
#pragma once

#include <cstddef>

namespace ferry {

constexpr std::size_t block_alignment = 64;
constexpr std::size_t huge_page_nbytes = std::size_t{2} << 20;
constexpr std::size_t mapped_from_nbytes = std::size_t{64} << 10;      // below it malloc's memory, above it pages
constexpr std::size_t huge_pages_from_nbytes = huge_page_nbytes;       // from here on aligned to huge pages
constexpr std::size_t huge_sizes_from_nbytes = std::size_t{64} << 20;  // from here on rounded to huge pages, too

// What a block for `nbytes` costs: rounded up to 64 bytes, from 64 KiB on to pages, from 64 MiB on to 2 MiB. Throws
// std::bad_alloc for what no address space holds.
[[nodiscard]] std::size_t block_nbytes(std::size_t nbytes);

// Tells the system that memory not yet written to, whoever owns it, is better backed by huge pages. A wish: never
// fails.
void prefer_huge_pages(std::byte* data, std::size_t nbytes) noexcept;

// Uninitialised memory, freed with the block; nobody else holds or frees it.
class Block {
 public:
  // Takes block_nbytes(nbytes) from the system. Throws std::bad_alloc.
  explicit Block(std::size_t nbytes);
  Block(Block&& other) noexcept;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Block& operator=(Block&&) = delete;
  ~Block();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 private:
  std::byte* data_;
  std::size_t nbytes_;
};

}  // namespace ferry
