// Which way a conversion takes: one pure function of what the source is and what was asked.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor_ref.hpp"
#include "transfer/casting.hpp"
#include "transfer/cause.hpp"

namespace ferry {

enum class Target : std::uint8_t { numpy, torch };
enum class CopyPolicy : std::uint8_t { if_needed, always, never, lazy };
enum class DTypeChoice : std::uint8_t { keep, native, bits, named };
enum class ReadOnlyPolicy : std::uint8_t { copy, share, raise };
enum class Path : std::uint8_t { view, lazy, copy };

struct Request {
  Target target = Target::numpy;
  CopyPolicy copy = CopyPolicy::if_needed;
  DTypeChoice dtype_choice = DTypeChoice::keep;
  DType dtype = DType::uint8;  // for DTypeChoice::named
  Casting casting = Casting::same_kind;
  Order order = Order::keep;
  ReadOnlyPolicy read_only = ReadOnlyPolicy::copy;  // for Target::torch
  bool into_destination = false;                    // out= was given
  bool no_memory = false;                           // the source is all zeros and has no storage
  bool lazy_possible = false;                       // the producer offers copy-on-write storage
  bool private_memory = false;                      // nobody else can see the source: it was made for this call
};

struct Decision {
  Path path = Path::view;
  Causes causes;
  DType value_dtype = DType::uint8;   // what the copy pass writes
  DType result_dtype = DType::uint8;  // what the result is labelled as; differs only for dtype="bits"
  bool writable = false;
  bool checks_values = false;  // casting="same_value"
  Extents shape;
  Extents strides;  // bytes
  std::int64_t nbytes_moved = 0;

  [[nodiscard]] bool shares_memory() const noexcept { return path != Path::copy; }
};

// Throws Error when the request cannot be met; touches no memory.
[[nodiscard]] Decision decide(const TensorRef& source, const Request& request);

// The commonest case towards NumPy, where decide() would choose a view: the hot path asks this before it describes the
// source. `marked`: memory holds other values than the tensor (conjugate or negative mark, other byte order).
[[nodiscard]] inline bool is_plain_view(DType dtype, bool marked, const Request& request) noexcept {
  return request.copy == CopyPolicy::if_needed && request.dtype_choice == DTypeChoice::keep &&
         request.order == Order::keep && !request.into_destination && !request.no_memory && !marked &&
         array_dtype(dtype) == dtype;
}

}  // namespace ferry
