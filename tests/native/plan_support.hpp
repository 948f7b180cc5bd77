// Sources and requests for the tests of decide(), and the errors it throws.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "core/error.hpp"
#include "support.hpp"
#include "transfer/plan.hpp"

namespace ferry::test {

// decide() touches no memory, so one small aligned block stands for that of every source.
inline std::byte* some_memory() {
  alignas(16) static std::array<std::byte, 64> memory{};
  return memory.data();
}

inline TensorRef source_of(DType dtype, Extents shape, Extents strides) {
  return tensor(some_memory(), dtype, shape, strides);
}

inline TensorRef packed_source(DType dtype, Extents shape) {
  return source_of(dtype, shape, contiguous_strides(shape, info(dtype).itemsize));
}

inline Request named(DType dtype, Target target = Target::numpy) {
  Request request;
  request.target = target;
  request.dtype_choice = DTypeChoice::named;
  request.dtype = dtype;
  return request;
}

inline Request choosing(DTypeChoice choice, Target target = Target::numpy) {
  Request request;
  request.target = target;
  request.dtype_choice = choice;
  return request;
}

inline Request towards_torch(ReadOnlyPolicy read_only = ReadOnlyPolicy::copy) {
  Request request;
  request.target = Target::torch;
  request.read_only = read_only;
  return request;
}

constexpr std::array<Cause, 16> every_cause{
    Cause::requested,  Cause::destination, Cause::no_memory,       Cause::conjugated, Cause::negated,
    Cause::byte_order, Cause::cast,        Cause::unpack,          Cause::pack,       Cause::widen,
    Cause::order,      Cause::read_only,   Cause::negative_stride, Cause::misaligned, Cause::overlapping,
    Cause::held};

// One bit each, in the order above.
inline unsigned bits_of(const Causes& causes) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < every_cause.size(); ++i) bits |= causes.has(every_cause[i]) ? 1U << i : 0U;
  return bits;
}

inline unsigned bits_of(std::initializer_list<Cause> expected) {
  Causes causes;
  for (const Cause cause : expected) causes.add(cause);
  return bits_of(causes);
}

inline std::optional<Error> refusal(const TensorRef& source, const Request& request) {
  try {
    static_cast<void>(decide(source, request));
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace ferry::test
