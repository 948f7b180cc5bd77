#include "transfer/stream_work.hpp"

#include <exception>
#include <utility>

#include "core/mutation.hpp"

namespace ferry {
namespace {

void add(Holds& holds, std::shared_ptr<void> hold) {
  if (hold) holds.push_back(std::move(hold));
}

void hold_slot(Holds& holds, const std::shared_ptr<StagingSlot>& slot) {
  if (!mutated(Mutation::reuse_staging_early)) holds.push_back(slot);
}

}  // namespace

StreamWork::StreamWork(cuda::Runtime& runtime, RetireQueue& retired, const cuda::ContextScope& scope,
                       cuda::CUstream producer)
    : runtime_(runtime),
      retired_(retired),
      device_(scope.device()),
      context_(scope.context()),
      producer_(producer),
      stream_(producer) {
  if (mutated(Mutation::skip_producer_order)) {
    stream_ = runtime.copy_stream(scope, cuda::Direction::to_host, producer);
  }
}

StreamWork::~StreamWork() {
  for (const auto& slot : touched_slots_) slot->lose();
  abandon(std::move(tensors_));
  abandon(std::move(memory_));
  // Of what is only staged, nothing is on its way to the host.
}

void StreamWork::copy(const cuda::ContextScope& scope, CopyKind kind, const CopyEnds& ends,
                      const std::vector<Move>& moves, const std::shared_ptr<void>& tensor, HostHold host) {
  prepare(scope, cuda::EventUse::waiting);
  hold(tensor);
  add(memory_, std::move(host.lease));
  add(memory_, std::move(host.owner));
  const cuda::Functions& functions = runtime_.functions();
  for (const Move& move : moves) enqueue_copy(functions, kind, ends, move, stream_);
}

void StreamWork::stage(const cuda::ContextScope& scope, std::uintptr_t source, const std::vector<Move>& into,
                       const std::shared_ptr<void>& tensor, std::shared_ptr<StagingSlot> slot,
                       std::uintptr_t host_address, std::vector<Move> out_of, HostHold host) {
  prepare_to_copy_out(scope);
  hold(tensor);
  hold_slot(memory_, slot);
  touched_slots_.push_back(slot);
  const cuda::Functions& functions = runtime_.functions();
  for (const Move& move : into) {
    enqueue_copy(functions, CopyKind::on_device, {static_cast<std::uintptr_t>(slot->address()), source}, move, stream_);
  }
  const CopyEnds ends{host_address, static_cast<std::uintptr_t>(slot->address())};
  staged_.push_back({std::move(slot), nullptr, ends, std::move(out_of), std::move(host)});
}

void StreamWork::store(const cuda::ContextScope& scope, const KernelWork& kernel, const Holds& tensors, Holds memory) {
  prepare(scope, cuda::EventUse::waiting);
  for (const std::shared_ptr<void>& tensor : tensors) hold(tensor);
  for (std::shared_ptr<void>& one : memory) add(memory_, std::move(one));
  kernel.kernels.launch(scope, kernel.launch, stream_);
}

void StreamWork::pack(const cuda::ContextScope& scope, const KernelWork& kernel, const Holds& tensors, Holds memory,
                      std::shared_ptr<StagingSlot> slot, std::vector<CopyOut> copies, bool in_stream) {
  if (in_stream) {
    prepare(scope, cuda::EventUse::waiting);
  } else {
    prepare_to_copy_out(scope);
  }
  for (const std::shared_ptr<void>& tensor : tensors) hold(tensor);
  for (std::shared_ptr<void>& one : memory) add(memory_, std::move(one));
  hold_slot(memory_, slot);
  touched_slots_.push_back(slot);
  const auto address = static_cast<std::uintptr_t>(slot->address());
  const bool early = mutated(Mutation::copy_before_pack);
  if (!early) kernel.kernels.launch(scope, kernel.launch, stream_);
  if (in_stream) slots_.push_back(slot);
  for (CopyOut& copy : copies) {
    const CopyEnds ends{copy.address, address};
    if (!in_stream) {
      staged_.push_back({slot, nullptr, ends, std::move(copy.moves), std::move(copy.host)});
      continue;
    }
    add(memory_, std::move(copy.host.lease));
    add(memory_, std::move(copy.host.owner));
    for (const Move& move : copy.moves) enqueue_copy(runtime_.functions(), CopyKind::to_host, ends, move, stream_);
  }
  if (early) kernel.kernels.launch(scope, kernel.launch, stream_);
}

void StreamWork::follow(const cuda::ContextScope& scope, const CopyEnds& ends, std::vector<Move> moves,
                        const std::shared_ptr<void>& tensor, HostHold host) {
  prepare_to_copy_out(scope);
  staged_.push_back({nullptr, tensor, ends, std::move(moves), std::move(host)});
}

void StreamWork::finish(std::vector<std::shared_ptr<const cuda::Event>>& events) {
  if (!event_) return;
  const auto event = std::exchange(event_, nullptr);
  const cuda::ContextScope scope(runtime_.driver(), device_, context_);
  event->record(stream_);
  for (const auto& slot : std::exchange(slots_, {})) slot->used_until(event);
  // From here on the queue holds what was touched on this stream.
  touched_slots_.clear();
  const bool can_wait = std::exchange(event_can_wait_, false);
  std::vector<Staged> staged = std::exchange(staged_, {});
  retired_.add({event, std::exchange(tensors_, {}), std::exchange(memory_, {}), nullptr});
  if (can_wait) events.push_back(event);
  if (staged.empty()) return;
  if (!mutated(Mutation::copy_before_snapshot)) cuda::order_after(runtime_.functions(), copy_stream_, event->handle());
  const auto copied = copied_;
  copy_out(std::move(staged));
  events.push_back(copied);
}

// On our copy stream, which comes after the snapshots.
void StreamWork::copy_out(std::vector<Staged> staged) {
  const auto copied = std::exchange(copied_, nullptr);
  std::exception_ptr failure;
  try {
    const cuda::Functions& functions = runtime_.functions();
    for (const Staged& one : staged) {
      for (const Move& move : one.out_of) enqueue_copy(functions, CopyKind::to_host, one.ends, move, copy_stream_);
    }
  } catch (...) {
    failure = std::current_exception();  // what was enqueued before is marked all the same
  }
  Retired work{copied, {}, {}, nullptr};
  for (Staged& one : staged) {
    add(work.memory, std::move(one.host.lease));
    add(work.memory, std::move(one.host.owner));
    if (one.slot) hold_slot(work.memory, one.slot);
    if (!mutated(Mutation::release_source_early)) add(work.sources, one.tensor);
  }
  try {
    copied->record(copy_stream_);
  } catch (...) {
    for (const Staged& one : staged) {
      if (one.slot) one.slot->lose();
    }
    abandon(std::move(work.memory));
    abandon(std::move(work.sources));
    throw;
  }
  for (Staged& one : staged) {
    if (one.slot) one.slot->used_until(copied);
  }
  staged.clear();
  retired_.add(std::move(work));
  if (failure) std::rethrow_exception(failure);
}

void StreamWork::prepare_to_copy_out(const cuda::ContextScope& scope) {
  prepare(scope, cuda::EventUse::ordering);
  if (copied_) return;
  copied_ = std::make_shared<const cuda::Event>(runtime_.events().take(scope, cuda::EventUse::waiting));
  copy_stream_ = runtime_.copy_stream(scope, cuda::Direction::to_host, producer_);
}

// Takes first what marking the work will need.
void StreamWork::prepare(const cuda::ContextScope& scope, cuda::EventUse use) {
  const bool can_wait = use == cuda::EventUse::waiting;
  if (event_ && (event_can_wait_ || !can_wait)) return;
  event_ = std::make_shared<const cuda::Event>(runtime_.events().take(scope, use));
  event_can_wait_ = can_wait;
}

void StreamWork::hold(const std::shared_ptr<void>& tensor) {
  if (!mutated(Mutation::release_source_early)) add(tensors_, tensor);
}

}  // namespace ferry
