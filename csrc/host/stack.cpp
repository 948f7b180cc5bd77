#include "host/stack.hpp"

#include <algorithm>
#include <array>

#include "host/carry.hpp"
#include "host/copy.hpp"
#include "host/logical_shape.hpp"
#include "host/parallel.hpp"
#include "host/row_pass.hpp"

namespace ferry {
namespace {

constexpr std::int64_t piece_nbytes = 128 * 1024;  // what a thread takes at a time
constexpr std::int64_t streamed_nbytes = 512;      // shorter runs would be all head and tail
constexpr std::int64_t scratch_nbytes = 4096;

TensorRef without_first_axis(const TensorRef& tensor) noexcept {
  TensorRef item = tensor;
  const auto rest = static_cast<std::size_t>(tensor.layout.ndim() - 1);
  item.layout.shape = Extents(std::span<const std::int64_t>(tensor.layout.shape.data() + 1, rest));
  item.layout.strides = Extents(std::span<const std::int64_t>(tensor.layout.strides.data() + 1, rest));
  return item;
}

bool is_alike(const TensorRef& a, const TensorRef& b) noexcept {
  return a.dtype == b.dtype && a.conjugated == b.conjugated && a.negated == b.negated &&
         a.byte_swapped == b.byte_swapped;
}

// Copies sources one after the other. What it found out about one it keeps for the next of its kind.
class ItemCopier {
 public:
  ItemCopier(const TensorRef& destination, std::span<const TensorRef> sources, bool stream) noexcept
      : sources_(sources),
        step_(destination.layout.strides[0]),
        item_(without_first_axis(destination)),
        count_(element_count(item_.layout.shape).value_or(0)),
        packed_(is_c_contiguous(item_.layout) && info(item_.dtype).elements_per_item == 1),
        stream_(stream && packed_ && count_ * item_.layout.itemsize >= streamed_nbytes) {}

  void operator()(std::size_t i) {
    const TensorRef& source = sources_[i];
    std::byte* to = item_.data + static_cast<std::int64_t>(i) * step_;
    if (known_ == nullptr || !is_alike(*known_, source)) {
      known_ = &source;
      pass_ = row_pass(item_, source);
    }
    if (pass_.row != nullptr && packed_ && is_c_contiguous(source.layout)) {
      copy_row(to, source.data);
    } else {
      TensorRef place = item_;
      place.data = to;
      copy(place, source);
    }
  }

 private:
  void copy_row(std::byte* to, const std::byte* from) const noexcept {
    const std::int64_t to_size = item_.layout.itemsize;
    const std::int64_t from_size = info(known_->dtype).itemsize;
    if (!stream_) {
      pass_.row(to, to_size, from, from_size, count_);
    } else if (pass_.bits_move) {
      kernels().stream_copy(to, from, count_ * to_size);
    } else {
      alignas(64) std::array<std::byte, static_cast<std::size_t>(scratch_nbytes)> scratch;
      const std::int64_t at_once = scratch_nbytes / to_size;
      for (std::int64_t first = 0; first < count_; first += at_once) {
        const std::int64_t length = std::min(at_once, count_ - first);
        pass_.row(scratch.data(), to_size, from + first * from_size, from_size, length);
        kernels().stream_copy(to + first * to_size, scratch.data(), length * to_size);
      }
    }
  }

  std::span<const TensorRef> sources_;
  std::int64_t step_;
  TensorRef item_;
  std::int64_t count_;
  bool packed_;
  bool stream_;
  const TensorRef* known_ = nullptr;
  RowPass pass_;
};

}  // namespace

void copy_each(const TensorRef& destination, std::span<const TensorRef> sources) {
  const TensorRef item = without_first_axis(destination);
  // Now, because a worker thread has nobody to throw to.
  for (const TensorRef& source : sources) static_cast<void>(common_shape(item, source));
  const auto count = static_cast<std::int64_t>(sources.size());
  const std::int64_t nbytes = element_count(destination.layout.shape).value_or(0) * destination.layout.itemsize;
  if (nbytes == 0) return;
  const int threads = useful_threads(nbytes);
  if (threads > 1 && count < 2 * threads) {  // few and large: each is shared between the threads
    TensorRef place = item;
    for (const TensorRef& source : sources) {
      copy(place, source);
      place.data += destination.layout.strides[0];
    }
    return;
  }
  const bool stream = nbytes >= stream_threshold_nbytes();
  const std::int64_t per_piece = std::max<std::int64_t>(piece_nbytes / (nbytes / count + 1), 1);
  parallel_for(threads, (count + per_piece - 1) / per_piece, [&](std::int64_t piece) noexcept {
    const ThreadLimit alone(1);
    ItemCopier copier(destination, sources, stream);
    const std::int64_t end = std::min((piece + 1) * per_piece, count);
    for (std::int64_t i = piece * per_piece; i < end; ++i) copier(static_cast<std::size_t>(i));
    if (stream) stream_fence();
  });
}

}  // namespace ferry
