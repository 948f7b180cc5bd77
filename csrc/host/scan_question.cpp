#include "host/scan_question.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "host/block_cast.hpp"
#include "host/element_io.hpp"
#include "host/exact.hpp"
#include "host/float_format.hpp"

namespace ferry {
namespace {

constexpr std::int64_t scratch_nbytes = 4096;
constexpr std::int64_t all_codes = 256;

std::size_t log2_of(std::int64_t nbytes) noexcept {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(nbytes)));
}

std::uint64_t low_bits(int count) noexcept { return ~std::uint64_t{0} >> (64 - count); }

std::uint64_t reversed(std::uint64_t word, std::int64_t nbytes) noexcept {
  return __builtin_bswap64(word) >> (64 - 8 * nbytes);
}

// The bits that all NaN and infinities of a format have, and where they stand.
struct Pattern {
  std::uint64_t mask;
  std::uint64_t bits;
};

std::optional<Pattern> nonfinite_pattern(DType dtype) noexcept {
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return Pattern{0x7FF0000000000000U, 0x7FF0000000000000U};
    case DType::float32:
    case DType::complex64:
      return Pattern{0x7F800000U, 0x7F800000U};
    default:
      break;
  }
  const FloatFormat format = float_format(dtype);
  switch (format.specials) {
    case Specials::ieee:
      return Pattern{format.infinity(), format.infinity()};
    case Specials::nan_only:
    case Specials::exponent_only:
      return Pattern{format.sign_bit() - 1U, format.sign_bit() - 1U};
    case Specials::unsigned_zero:
      return Pattern{2U * format.sign_bit() - 1U, format.sign_bit()};
    default:
      return std::nullopt;
  }
}

constexpr FloatFormat single{8, 23, 127, Specials::ieee};

// The place of the smallest number >= low among all numbers of the format in order; that of 0 is 0, of -0 is -1.
std::int64_t place_at_least(const FloatFormat& format, double low) noexcept {
  const std::uint32_t code = encode(format, low);
  const double near = decode(format, code);
  if (near == 0.0) return low > 0.0 ? 1 : -1;
  const std::int64_t magnitude = code & (format.sign_bit() - 1U);
  return (near < 0.0 ? ~magnitude : magnitude) + (near < low ? 1 : 0);
}

std::int64_t place_at_least(double low) noexcept {
  if (low == 0.0) return -1;
  const auto code = std::bit_cast<std::int64_t>(low);
  return low < 0.0 ? ~(code & std::numeric_limits<std::int64_t>::max()) : code;
}

std::int64_t place_at_least(DType dtype, double low) noexcept {
  if (dtype == DType::float64) return place_at_least(low);
  return place_at_least(dtype == DType::float32 ? single : float_format(dtype), low);
}

}  // namespace

ScanQuestion::ScanQuestion(const TensorRef& tensor, const Kernels& kernels) noexcept
    : itemsize_(info(tensor.dtype).itemsize),
      per_item_(info(tensor.dtype).elements_per_item),
      pack_(kernels.move[static_cast<std::size_t>(itemsize_ - 1)]),
      sum_marks_(kernels.sum_marks) {}

template <class IsWanted>
void ScanQuestion::mark_bytes(const TensorRef& tensor, IsWanted&& is_wanted) {
  const ElementIO io = element_io(tensor.dtype, false);
  const std::int64_t at_once = block_elements / per_item_;
  Block block;
  for (std::int64_t first = 0; first < all_codes; first += at_once) {
    std::array<std::byte, static_cast<std::size_t>(all_codes)> codes;
    for (std::int64_t i = 0; i < at_once; ++i) codes[static_cast<std::size_t>(i)] = static_cast<std::byte>(first + i);
    io.load(codes.data(), 1, at_once * per_item_, block);
    apply_bits(tensor, block, at_once * per_item_);
    for (std::int64_t i = 0; i < at_once; ++i) {
      int mark = 0;
      for (std::int64_t k = 0; k < per_item_; ++k) mark += is_wanted(block, i * per_item_ + k) ? 1 : 0;
      marks_[static_cast<std::size_t>(first + i)] = static_cast<std::uint8_t>(mark);
    }
  }
}

std::optional<ScanQuestion> ScanQuestion::nonfinite(const TensorRef& tensor, const Kernels& kernels) {
  const DTypeInfo& type = info(tensor.dtype);
  if (type.kind != Kind::floating && type.kind != Kind::complex) return std::nullopt;
  const auto pattern = nonfinite_pattern(tensor.dtype);
  if (!pattern) return std::nullopt;
  ScanQuestion question(tensor, kernels);
  if (tensor.dtype == DType::float8_e8m0fnu && tensor.negated) {  // it has no negatives
    question.mark_bytes(tensor,
                        [](const Block& block, std::int64_t i) { return !std::isfinite(block.as<double>()[i]); });
    return question;
  }
  question.words_per_item_ = type.kind == Kind::complex ? 2 : 1;
  const std::int64_t word_nbytes = type.itemsize / question.words_per_item_;
  const auto in_memory = [&](std::uint64_t bits) { return tensor.byte_swapped ? reversed(bits, word_nbytes) : bits; };
  question.ask(kernels.matches[log2_of(word_nbytes)], in_memory(pattern->mask), in_memory(pattern->bits));
  return question;
}

ScanQuestion ScanQuestion::outside(const TensorRef& tensor, double low, double high, const Kernels& kernels) {
  ScanQuestion question(tensor, kernels);
  if (info(tensor.dtype).kind == Kind::floating) {
    question.ask_floats(tensor, low, high, kernels);
  } else {
    question.ask_integers(tensor, low, high, kernels);
  }
  if (tensor.byte_swapped && question.itemsize_ > 1) {
    question.pack_ = kernels.swap[log2_of(question.itemsize_)];
    question.packs_always_ = true;
  }
  return question;
}

void ScanQuestion::ask(CountWords words, std::uint64_t a, std::uint64_t b) noexcept {
  words_ = words;
  a_ = a;
  b_ = b;
}

void ScanQuestion::ask_integers(const TensorRef& tensor, double low, double high, const Kernels& kernels) {
  const DTypeInfo& type = info(tensor.dtype);
  const bool is_signed = type.kind == Kind::signed_integer;
  if (type.value_bits < 8) {
    if (is_signed) {
      const auto inside = integers_between<std::int64_t>(low, high);
      mark_bytes(tensor,
                 [&](const Block& block, std::int64_t i) { return !inside.contains(block.as<std::int64_t>()[i]); });
    } else {
      const auto inside = integers_between<std::uint64_t>(low, high);
      mark_bytes(tensor,
                 [&](const Block& block, std::int64_t i) { return !inside.contains(block.as<std::uint64_t>()[i]); });
    }
    return;
  }
  const int bits = type.value_bits;
  const std::size_t size = log2_of(itemsize_);
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool is_empty = false;
  if (is_signed) {
    const auto most = static_cast<std::int64_t>(low_bits(bits - 1));
    const auto inside = integers_between<std::int64_t>(low, high);
    const IntegerRange<std::int64_t> held{std::max(inside.low, -most - 1), std::min(inside.high, most)};
    is_empty = held.low > held.high;
    first = static_cast<std::uint64_t>(held.low);
    last = static_cast<std::uint64_t>(held.high);
  } else {
    const auto inside = integers_between<std::uint64_t>(low, high);
    first = inside.low;
    last = std::min(inside.high, low_bits(bits));
    is_empty = first > last;
  }
  // -v lies between first and last where v lies between -last and -first, modulo the size of a word.
  const std::uint64_t span = last - first;
  if (is_empty) {
    ask(kernels.matches[size], 0, 0);
  } else {
    ask(kernels.beyond[size], tensor.negated ? std::uint64_t{0} - last : first, span);
  }
}

void ScanQuestion::ask_floats(const TensorRef& tensor, double low, double high, const Kernels& kernels) {
  if (itemsize_ == 1) {
    mark_bytes(tensor, [&](const Block& block, std::int64_t i) {
      const double value = block.as<double>()[i];
      return !(low <= value && value <= high);
    });
    return;
  }
  const std::size_t size = log2_of(itemsize_);
  const double first = tensor.negated ? -high : low;
  const double last = tensor.negated ? -low : high;
  if (!(first <= last)) return ask(kernels.matches[size], 0, 0);
  const std::int64_t from = place_at_least(tensor.dtype, first);
  const std::int64_t to = ~place_at_least(tensor.dtype, -last);
  if (from > to) return ask(kernels.matches[size], 0, 0);
  ask(kernels.beyond_in_magnitude[size], static_cast<std::uint64_t>(from),
      static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from));
}

std::int64_t ScanQuestion::count(const std::byte* items, std::int64_t step, std::int64_t count) const noexcept {
  if (step == itemsize_ && !packs_always_) return count_packed(items, count);
  alignas(64) std::array<std::byte, static_cast<std::size_t>(scratch_nbytes)> scratch;
  const std::int64_t at_once = scratch_nbytes / itemsize_;
  std::int64_t found = 0;
  for (std::int64_t first = 0; first < count; first += at_once) {
    const std::int64_t length = std::min(at_once, count - first);
    pack_(scratch.data(), itemsize_, items + first * step, step, length);
    found += count_packed(scratch.data(), length);
  }
  return found;
}

std::int64_t ScanQuestion::count_packed(const std::byte* items, std::int64_t count) const noexcept {
  if (words_ == nullptr) return sum_marks_(items, count, marks_.data());
  if (words_per_item_ == 2) return count_pairs(items, count);
  return words_(items, count, a_, b_);
}

// Both parts of a number may answer yes, so pairs with an answer are looked at one by one. They are rare.
std::int64_t ScanQuestion::count_pairs(const std::byte* items, std::int64_t count) const noexcept {
  constexpr std::int64_t at_once = 1024;
  std::int64_t found = 0;
  for (std::int64_t first = 0; first < count; first += at_once) {
    const std::int64_t length = std::min(at_once, count - first);
    const std::byte* block = items + first * itemsize_;
    if (words_(block, 2 * length, a_, b_) == 0) continue;
    for (std::int64_t i = 0; i < length; ++i) found += words_(block + i * itemsize_, 2, a_, b_) > 0 ? 1 : 0;
  }
  return found;
}

std::int64_t ScanQuestion::first_in_item(const std::byte* item) const noexcept {
  if (per_item_ == 1) return 0;
  const auto low = static_cast<std::size_t>(static_cast<std::uint8_t>(*item) & 0xFU);
  return marks_[low | (low << 4U)] > 0 ? 0 : 1;  // a byte whose elements both are the first one
}

}  // namespace ferry
