#include "pinned/pinned_block.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "core/mutation.hpp"
#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"
#include "cuda/fork_generation.hpp"
#include "host/pool/block.hpp"
#include "pinned/first_touch.hpp"
#include "pinned/kept_for_good.hpp"
#include "pinned/memory_headroom.hpp"
#include "pinned/numa_node.hpp"

namespace ferry {
namespace {

using cuda::RegistrationOutcome;
using Registrations = std::vector<cuda::Registration>;

constexpr std::size_t largest_nbytes = std::numeric_limits<std::size_t>::max() / 4;
constexpr std::size_t most_pieces = 16;
constexpr std::size_t smallest_piece_nbytes = std::size_t{64} << 10;
constexpr cuda::CUresult not_registered = 713;

std::size_t page_nbytes() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t rounded_up(std::size_t nbytes, std::size_t unit) noexcept { return (nbytes + unit - 1) / unit * unit; }

// The answer to a registration may be that of earlier work, and the pages be registered all the same. False when they
// may still be.
bool surely_unregistered(const cuda::Functions& functions, std::byte* data) noexcept {
  const cuda::RelaxedCapture relaxed(functions, std::nothrow);
  const cuda::CUresult code = functions.cuMemHostUnregister(data);
  return code == cuda::success || code == not_registered;
}

enum class Answer : unsigned char { registered, refused, never };

// Registers in pieces; what was registered stays so when an Error is thrown.
class Attempt {
 public:
  Attempt(const cuda::ContextScope& scope, Registrations& pieces, std::size_t nbytes)
      : scope_(scope), pieces_(pieces), smallest_nbytes_(std::max(smallest_piece_nbytes, nbytes / most_pieces)) {
    pieces_.reserve(2 * most_pieces);  // so that no registration can get lost
  }

  // Halves of halves, at borders of pages, of huge ones where there are such.
  bool in_pieces(std::byte* data, std::size_t nbytes) {
    const Answer answer = as_one(data, nbytes);
    if (answer != Answer::refused) return answer == Answer::registered;
    const std::size_t unit = nbytes >= 2 * huge_page_nbytes ? huge_page_nbytes : page_nbytes();
    const std::size_t half = rounded_up(nbytes / 2, unit);
    if (half < smallest_nbytes_ || half >= nbytes) return false;
    return in_pieces(data, half) && in_pieces(data + half, nbytes - half);
  }
  // True when pages may be registered though we hold no registration: they must stay mapped.
  [[nodiscard]] bool left_something() const noexcept { return left_something_; }
  [[nodiscard]] std::byte* last() const noexcept { return last_; }  // what was tried last

 private:
  Answer as_one(std::byte* data, std::size_t nbytes) {
    last_ = data;
    left_something_ = true;  // until we know better
    auto made = cuda::register_host(scope_, data, nbytes);
    left_something_ = false;
    if (made.registration) {
      pieces_.push_back(std::move(*made.registration));
      return Answer::registered;
    }
    left_something_ = !surely_unregistered(scope_.driver().functions(), data);
    const bool smaller_may_do = made.outcome != RegistrationOutcome::not_permitted &&
                                made.outcome != RegistrationOutcome::not_supported && !left_something_;
    return smaller_may_do ? Answer::refused : Answer::never;
  }

  const cuda::ContextScope& scope_;
  Registrations& pieces_;
  std::size_t smallest_nbytes_;
  std::byte* last_ = nullptr;
  bool left_something_ = false;
};

}  // namespace

std::size_t pinned_block_nbytes(std::size_t nbytes) {
  if (nbytes > largest_nbytes) throw std::bad_alloc();
  return rounded_up(std::max<std::size_t>(nbytes, 1),
                    nbytes >= huge_sizes_from_nbytes ? huge_page_nbytes : page_nbytes());
}

PinnedBlock::PinnedBlock(const cuda::ContextScope& scope, Memory memory) noexcept
    : driver_(scope.driver()),
      context_(scope.context()),
      generation_(cuda::fork_generation()),
      memory_(std::move(memory)) {}

bool PinnedBlock::register_pages(const cuda::ContextScope& scope) {
  Attempt attempt(scope, registrations_, nbytes());
  try {
    const bool registered = attempt.in_pieces(data(), nbytes());
    may_unmap_ = !attempt.left_something();
    return registered;
  } catch (const Error&) {
    may_unmap_ = !attempt.left_something() || surely_unregistered(scope.driver().functions(), attempt.last());
    throw;
  }
}

std::optional<PinnedBlock> PinnedBlock::make(const cuda::ContextScope& scope, std::size_t nbytes) {
  const std::size_t whole = pinned_block_nbytes(nbytes);
  if (!may_touch(whole)) return std::nullopt;
  {
    Memory pages;
    pages.push_back(mapped_pages(whole));
    PinnedBlock block(scope, std::move(pages));
    prefer_memory_near(scope, block.data(), whole);
    touch_pages(block.data(), whole);
    if (block.register_pages(scope)) return block;
  }
  Memory memory;
  memory.push_back(driver_pages(scope, whole));
  if (memory.front() == nullptr) return std::nullopt;
  return PinnedBlock(scope, std::move(memory));
}

std::optional<PinnedBlock> PinnedBlock::lock(const cuda::ContextScope& scope, std::unique_ptr<PinnedMemory>& pages) {
  if (!may_touch(pages->nbytes())) return std::nullopt;
  Memory memory(1);
  memory.front() = std::move(pages);
  PinnedBlock block(scope, std::move(memory));
  std::exception_ptr failed;
  try {
    if (block.register_pages(scope)) return block;
  } catch (const Error&) {
    failed = std::current_exception();
  }
  block.unregister();
  if (block.may_unmap_) {
    pages = std::move(block.memory_.front());
    block.memory_.clear();
  }
  if (failed) std::rethrow_exception(failed);
  return std::nullopt;
}

void PinnedBlock::unregister() noexcept {
  for (cuda::Registration& registration : registrations_) {
    const cuda::CUresult code = registration.release();
    cuda::report_cleanup(code, "cuMemHostUnregister");
    may_unmap_ = may_unmap_ && code == cuda::success;
  }
}

PinnedBlock::~PinnedBlock() {
  if (memory_.empty()) return;
  if (cuda::fork_generation() != generation_) {  // what a child inherited is not its own to free
    static_cast<void>(memory_.front().release());
    return;
  }
  unregister();
  if (!may_unmap_) keep_for_good(memory_);
}

std::size_t PinnedBlock::piece_nbytes(const std::byte* data, std::size_t nbytes) const noexcept {
  if (mutated(Mutation::ignore_registration_edge)) return nbytes;
  if (registrations_.empty()) {
    const std::byte* const end = this->data() + this->nbytes();
    return data < this->data() || data >= end ? 0 : std::min(nbytes, static_cast<std::size_t>(end - data));
  }
  for (const cuda::Registration& piece : registrations_) {
    const std::byte* const end = piece.data() + piece.nbytes();
    if (data >= piece.data() && data < end) return std::min(nbytes, static_cast<std::size_t>(end - data));
  }
  return 0;
}

std::optional<cuda::CUdeviceptr> PinnedBlock::device_pointer(const std::byte* data) const {
  if (piece_nbytes(data, 1) == 0) return std::nullopt;
  for (const cuda::Registration& piece : registrations_) {
    if (data >= piece.data() && data < piece.data() + piece.nbytes()) {
      return piece.device_pointer() + static_cast<cuda::CUdeviceptr>(data - piece.data());
    }
  }
  if (!registrations_.empty()) return std::nullopt;
  cuda::CUdeviceptr pointer = 0;
  const cuda::Functions& functions = driver_.functions();
  cuda::check(functions, functions.cuMemHostGetDevicePointer(&pointer, this->data(), 0), "cuMemHostGetDevicePointer");
  return pointer + static_cast<cuda::CUdeviceptr>(data - this->data());
}

bool PinnedBlock::is_registered() const noexcept {
  const cuda::Functions* functions = driver_.functions_if_usable();
  return functions != nullptr && cuda::is_alive(*functions, context_);
}

}  // namespace ferry
