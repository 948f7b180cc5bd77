#include "transfer/cause.hpp"

#include <array>

namespace ferry {
namespace {

struct CauseText {
  Cause cause;
  const char* text;
};

constexpr std::array<CauseText, 16> cause_texts{{
    {Cause::requested, "a private copy was asked for"},
    {Cause::destination, "a destination was given"},
    {Cause::no_memory, "a zero tensor has no memory to share"},
    {Cause::conjugated, "the conjugate bit is set, so memory holds other values than the tensor"},
    {Cause::negated, "the negative bit is set, so memory holds other values than the tensor"},
    {Cause::byte_order, "the bytes are in the other order than this machine's"},
    {Cause::cast, "the dtype changes"},
    {Cause::unpack, "two elements share a byte and must be unpacked"},
    {Cause::pack, "torch packs two elements of this dtype into a byte"},
    {Cause::widen, "NumPy has no complex32, so it widens to complex64"},
    {Cause::order, "the memory order asked for is not the source's"},
    {Cause::read_only, "the array is read-only and a torch tensor is always writable"},
    {Cause::negative_stride, "torch has no negative strides"},
    {Cause::misaligned, "addresses or strides are no multiples of the element size"},
    {Cause::overlapping, "elements overlap, so a write to one would change others"},
    {Cause::held, "the memory cannot become copy-on-write, or somebody else holds it"},
}};

}  // namespace

std::vector<std::string> Causes::explain() const {
  std::vector<std::string> clauses;
  for (const auto& [cause, text] : cause_texts) {
    if (has(cause)) clauses.emplace_back(text);
  }
  return clauses;
}

}  // namespace ferry
