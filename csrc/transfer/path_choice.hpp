// Which way the elements of one tensor take to the host: a pure function of what is known beforehand.
#pragma once

#include <cstdint>

#include "core/tensor_ref.hpp"
#include "transfer/link_figures.hpp"

namespace ferry {

enum class HostMemory : std::uint8_t {
  mapped,    // pinned in one piece, at an address that kernels can store to
  pinned,    // copies reach it, stores do not
  ordinary,  // neither
};

enum class CopyPath : std::uint8_t {
  nothing,        // there are no elements
  direct_store,   // one kernel stores them into host memory
  block,          // one copy
  rows,           // one copy of equal rows at a step
  pieces,         // as many copies as the layouts ask for
  pack,           // one kernel packs them on the device, one copy follows
  chunked_pack,   // the same part by part
  producer_pack,  // their producer packs them, one copy follows
  ring,           // part by part through pinned memory of ours
};

enum class Packer : std::uint8_t { nobody, kernel, producer };

struct PathFacts {
  // What lies on the device, repeated elements once.
  bool is_block = true;     // fills its bytes, in some order of its axes, and lies so at the host, too
  bool rows_pay = false;    // equal rows in both, wide enough: see has_wide_rows
  bool casts = false;       // to another dtype, which is smaller
  std::int64_t nbytes = 0;  // over the link
  bool host_waits = true;
  HostMemory destination = HostMemory::mapped;
  bool has_kernels = false;
  bool producer_packs = false;
  std::int64_t staging_nbytes = 0;  // the largest that is packed at once
};

struct PathChoice {
  CopyPath path = CopyPath::nothing;
  Packer packer = Packer::nobody;

  bool operator==(const PathChoice&) const = default;
};

// Casts need kernels: without them the caller asks for none.
[[nodiscard]] PathChoice choose_path(const PathFacts& facts, const LinkFigures& link);

// What the layouts and dtypes of a copy tell; the rest is the caller's to add.
[[nodiscard]] PathFacts path_facts(const TensorRef& source, const TensorRef& target, const LinkFigures& link);

// Is this worth a copy row by row? Rows of `rows_from` bytes on, all in units of 64 bytes.
[[nodiscard]] bool has_wide_rows(const Layout& layout, std::int64_t rows_from);

}  // namespace ferry
