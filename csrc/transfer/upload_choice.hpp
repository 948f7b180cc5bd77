// Which way the elements of one tensor take to a device: a pure function of what is known beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor_ref.hpp"
#include "transfer/link_figures.hpp"
#include "transfer/pack_chunks.hpp"

namespace ferry {

enum class UploadPath : std::uint8_t {
  nothing,
  ring,             // cast and packed by the host into the ring, from where copies reach the destination
  unpack,           // packed by the host into the ring, copied to staging, cast and unpacked by a kernel
  direct,           // one copy from the caller's pinned memory, which the call waits for
  direct_unpack,    // the same to staging, and a kernel
  producer_unpack,  // its own library does it, from a dense tensor
};

// In bytes over the link.
struct UploadLimits {
  std::int64_t ring_nbytes = std::int64_t{64} << 20;
  std::int64_t staging_nbytes = std::int64_t{64} << 20;
  std::int64_t unpacks_from = std::int64_t{64} << 10;  // smaller ones the host orders sooner than a kernel is launched
  std::int64_t waits_from = std::int64_t{1} << 20;     // smaller ones are in the ring sooner than a copy is waited for
};

struct UploadFacts {
  bool is_pinned = false;        // the source
  bool needs_no_host = true;     // the source is one run of bytes that goes over the link as it is
  bool same_order = true;        // and lies so in the destination, in one run or in rows that are wide enough
  bool is_block = true;          // the destination fills its bytes
  bool rows_pay = false;         // else its rows are wide enough
  bool casts_on_device = false;  // to elements that are larger
  bool kernels_fit = true;       // they can unpack it, if there are any
  bool has_kernels = false;
  DType dtype = DType::uint8;  // over the link
  std::int64_t nbytes = 0;     // over the link
};

[[nodiscard]] UploadPath choose_upload(const UploadFacts& facts, const UploadLimits& limits);

// What the two ends tell; the rest is the caller's to add. Values that become larger are cast on the device.
[[nodiscard]] UploadFacts upload_facts(const TensorRef& destination, const TensorRef& source, const LinkFigures& link);

// The parts that are unpacked one after the other; `slot_nbytes` of the ring, or 0 where it is not used.
[[nodiscard]] std::vector<UnpackChunk> upload_parts(const TensorRef& destination, const TensorRef& source, DType dtype,
                                                    const UploadLimits& limits, std::int64_t slot_nbytes);

}  // namespace ferry
