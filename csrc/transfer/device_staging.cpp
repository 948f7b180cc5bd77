#include "transfer/device_staging.hpp"

#include <algorithm>
#include <utility>

#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"
#include "transfer/abandoned.hpp"
#include "transfer/event_wait.hpp"

namespace ferry {
namespace {

constexpr std::size_t place_alignment = 512;  // as the driver aligns memory of its own

constexpr std::size_t aligned(std::size_t nbytes) noexcept {
  return (nbytes + place_alignment - 1) / place_alignment * place_alignment;
}

// Memory of cuMemAllocAsync, and the stream that it is given back in.
class StreamOrderedBlock {
 public:
  StreamOrderedBlock(const cuda::ContextScope& scope, std::size_t nbytes) : driver_(scope.driver()), stream_(scope) {
    const cuda::Functions& functions = driver_.functions();
    const cuda::RelaxedCapture relaxed(functions);
    code_ = functions.cuMemAllocAsync(&address_, nbytes, stream_.handle());
  }
  StreamOrderedBlock(const StreamOrderedBlock&) = delete;
  StreamOrderedBlock& operator=(const StreamOrderedBlock&) = delete;
  ~StreamOrderedBlock() {
    const cuda::Functions* functions = driver_.functions_if_usable();
    if (address_ == 0 || functions == nullptr || !cuda::is_alive(*functions, stream_.context())) return;
    const cuda::RelaxedCapture relaxed(*functions, std::nothrow);
    const cuda::PushedContext pushed(driver_, stream_.context().handle);
    cuda::report_cleanup(functions->cuMemFreeAsync(address_, stream_.handle()), "cuMemFreeAsync");
  }

  [[nodiscard]] cuda::CUresult code() const noexcept { return code_; }
  [[nodiscard]] cuda::CUdeviceptr address() const noexcept { return address_; }
  [[nodiscard]] cuda::CUstream stream() const noexcept { return stream_.handle(); }

 private:
  const cuda::Driver& driver_;
  cuda::OwnedStream stream_;
  cuda::CUdeviceptr address_ = 0;
  cuda::CUresult code_ = cuda::success;
};

}  // namespace

StagingSlot::~StagingSlot() { staging_->give_back(ticket_); }

void StagingSlot::used_until(std::shared_ptr<const cuda::Event> done) noexcept {
  staging_->used_until(ticket_, std::move(done));
}

void StagingSlot::lose() noexcept { staging_->has_losses_.store(true, std::memory_order_relaxed); }

DeviceStaging::DeviceStaging(cuda::Runtime& runtime, const cuda::ContextScope& scope, DeviceMemory memory,
                             std::size_t nbytes)
    : runtime_(runtime), context_(scope.context()), memory_(std::move(memory)), nbytes_(nbytes) {
  auto ready = std::make_shared<const cuda::Event>(runtime.events().take(scope, cuda::EventUse::ordering));
  ready->record(memory_.stream);
  ready_ = std::move(ready);
}

DeviceStaging::~DeviceStaging() {
  const cuda::Functions* functions = runtime_.driver().functions_if_usable();
  // The owner may be an allocator's that does not know of the reset.
  if (functions == nullptr || !cuda::is_alive(*functions, context_)) abandon({std::move(memory_.owner)});
}

std::shared_ptr<StagingSlot> DeviceStaging::take(std::size_t nbytes, cuda::CUstream stream, std::size_t most) {
  const std::size_t wanted = aligned(std::max<std::size_t>(nbytes, 1));
  const std::lock_guard lock(mutex_);
  const auto same_stream = [stream](const Place& place) { return place.stream == stream; };
  if (static_cast<std::size_t>(std::count_if(places_.begin(), places_.end(), same_stream)) >= most) return nullptr;
  std::size_t offset = 0;
  auto at = places_.begin();
  for (; at != places_.end() && at->offset - offset < wanted; ++at) offset = at->offset + at->nbytes;
  if (nbytes_ - offset < wanted) return nullptr;
  const std::uint64_t ticket = ++last_ticket_;
  places_.insert(at, {offset, wanted, stream, ticket, nullptr});
  try {
    return std::make_shared<StagingSlot>(shared_from_this(), ticket, memory_.address + offset);
  } catch (...) {
    std::erase_if(places_, [ticket](const Place& place) { return place.ticket == ticket; });
    throw;
  }
}

std::vector<std::shared_ptr<StagingSlot>> DeviceStaging::take_some(std::size_t nbytes, std::size_t count,
                                                                   cuda::CUstream stream, std::size_t most) {
  std::vector<std::shared_ptr<StagingSlot>> slots;
  while (slots.size() < count) {
    auto slot = take(nbytes, stream, most);
    if (!slot) break;
    slots.push_back(std::move(slot));
  }
  return slots;
}

void DeviceStaging::order_after_memory(cuda::CUstream stream) {
  std::shared_ptr<const cuda::Event> ready;
  {
    const std::lock_guard lock(mutex_);
    ready = ready_;
  }
  if (!ready) return;
  const cuda::Functions& functions = runtime_.functions();
  if (!is_done(functions, *ready)) {
    cuda::order_after(functions, stream, ready->handle());
    return;
  }
  const std::lock_guard lock(mutex_);
  ready_.reset();
}

std::shared_ptr<const cuda::Event> DeviceStaging::oldest() const {
  const std::lock_guard lock(mutex_);
  const Place* found = nullptr;
  for (const Place& place : places_) {
    if (place.done && (found == nullptr || place.ticket < found->ticket)) found = &place;
  }
  return found == nullptr ? nullptr : found->done;
}

void DeviceStaging::give_back(std::uint64_t ticket) noexcept {
  std::shared_ptr<const cuda::Event> dropped;  // goes back to its pool without our lock
  const std::lock_guard lock(mutex_);
  const auto at =
      std::find_if(places_.begin(), places_.end(), [ticket](const Place& place) { return place.ticket == ticket; });
  if (at == places_.end()) return;
  dropped = std::move(at->done);
  places_.erase(at);
}

void DeviceStaging::used_until(std::uint64_t ticket, std::shared_ptr<const cuda::Event> done) noexcept {
  const std::lock_guard lock(mutex_);
  for (Place& place : places_) {
    if (place.ticket == ticket) place.done.swap(done);
  }
}

std::optional<DeviceMemory> staging_from_driver(const cuda::ContextScope& scope, std::size_t nbytes) {
  const cuda::Functions& functions = scope.driver().functions();
  if (!functions.have_stream_memory()) return std::nullopt;
  auto block = std::make_shared<StreamOrderedBlock>(scope, nbytes);
  if (block->code() == cuda::result::out_of_memory || block->code() == cuda::result::not_supported) return std::nullopt;
  cuda::check(functions, block->code(), "cuMemAllocAsync");
  DeviceMemory memory{block->address(), nullptr, block->stream()};
  memory.owner = std::move(block);
  return memory;
}

}  // namespace ferry
