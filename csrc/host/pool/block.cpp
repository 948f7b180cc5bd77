#include "host/pool/block.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

#include "host/pool/address_sanitizer.hpp"

namespace ferry {
namespace {

constexpr std::size_t largest_nbytes = std::numeric_limits<std::size_t>::max() / 4;

std::size_t page_nbytes() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t rounded_up(std::size_t nbytes, std::size_t unit) noexcept { return (nbytes + unit - 1) / unit * unit; }

std::byte* mapped(std::size_t nbytes) {
  void* memory = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

// Bytes from `data` to the next huge page.
std::size_t to_huge_page(const std::byte* data) noexcept {
  return (huge_page_nbytes - reinterpret_cast<std::uintptr_t>(data) % huge_page_nbytes) % huge_page_nbytes;
}

// Maps too much and gives back what lies before the first huge page and behind the block.
std::byte* mapped_at_huge_page(std::size_t nbytes) {
  std::byte* memory = mapped(nbytes + huge_page_nbytes);
  const std::size_t before = to_huge_page(memory);
  const std::size_t behind = huge_page_nbytes - before;
  if (before > 0) ::munmap(memory, before);
  if (behind > 0) ::munmap(memory + before + nbytes, behind);
  prefer_huge_pages(memory + before, nbytes);
  return memory + before;
}

std::byte* taken(std::size_t nbytes) {
  if (nbytes >= huge_pages_from_nbytes) return mapped_at_huge_page(nbytes);
  if (nbytes >= mapped_from_nbytes) return mapped(nbytes);
  void* memory = std::aligned_alloc(block_alignment, nbytes);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

}  // namespace

std::size_t block_nbytes(std::size_t nbytes) {
  if (nbytes > largest_nbytes) throw std::bad_alloc();
  if (nbytes >= huge_sizes_from_nbytes) return rounded_up(nbytes, huge_page_nbytes);
  if (nbytes > mapped_from_nbytes - block_alignment) return rounded_up(nbytes, page_nbytes());
  return rounded_up(nbytes > 0 ? nbytes : 1, block_alignment);
}

void prefer_huge_pages([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t nbytes) noexcept {
#ifdef MADV_HUGEPAGE
  const std::size_t before = to_huge_page(data);
  if (nbytes < before + huge_page_nbytes) return;
  const std::size_t whole = (nbytes - before) / page_nbytes() * page_nbytes();
  ::madvise(data + before, whole, MADV_HUGEPAGE);  // a kernel without huge pages refuses
#endif
}

Block::Block(std::size_t nbytes) : data_(taken(block_nbytes(nbytes))), nbytes_(block_nbytes(nbytes)) {}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), nbytes_(std::exchange(other.nbytes_, 0)) {}

Block::~Block() {
  if (data_ == nullptr) return;
  allow_access(data_, nbytes_);  // the system may give the addresses to others
  if (nbytes_ >= mapped_from_nbytes) {
    ::munmap(data_, nbytes_);
  } else {
    std::free(data_);
  }
}

}  // namespace ferry
