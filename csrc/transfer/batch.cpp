#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "transfer/event_wait.hpp"
#include "transfer/host_target.hpp"
#include "transfer/refusals.hpp"
#include "transfer/staged_moves.hpp"
#include "transfer/stream_work.hpp"
#include "transfer/transfers.hpp"

namespace ferry {
namespace {

constexpr std::size_t most_moves = 1024;
// How long a call that may wait does so for slots of batches that others have not closed yet.
constexpr std::chrono::seconds patience_with_others{1};
constexpr std::chrono::microseconds pause{50};

std::size_t nbytes_of(const TensorRef& ref) {
  return static_cast<std::size_t>(element_count(ref.layout.shape).value_or(0) * ref.layout.itemsize);
}

std::uintptr_t address_of(const TensorRef& ref) { return reinterpret_cast<std::uintptr_t>(ref.data); }

std::vector<Move> in_chunks(const std::vector<Move>& moves, std::size_t nbytes) {
  std::vector<Move> chunks;
  for (const Move& move : moves) {
    const std::vector<Move> parts = chunks_of(move, static_cast<std::int64_t>(std::max<std::size_t>(nbytes, 1)));
    chunks.insert(chunks.end(), parts.begin(), parts.end());
  }
  return chunks;
}

// False, a little later, when nobody knows yet when a slot will be free: batches of others are not closed.
bool wait_for_oldest(const cuda::Functions& functions, const DeviceStaging& staging) {
  const auto oldest = staging.oldest();
  if (oldest) {
    wait_for(functions, *oldest);
  } else {
    std::this_thread::sleep_for(pause);
  }
  return oldest != nullptr;
}

}  // namespace

Transfers::Batch::Batch(Transfers& transfers) noexcept : transfers_(transfers) {}

Transfers::Batch::~Batch() {
  try {
    finish_all();
  } catch (...) {  // retired or abandoned all the same, and nobody asks for the values
  }
}

DownloadFacts Transfers::Batch::download(const DeviceTensor& source, const HostTarget& target, Snapshot snapshot,
                                         BackPressure pressure) {
  const bool casts = target.ref.dtype != source.ref.dtype;
  if (casts) {
    refuse_overlap(target.ref);
  } else {
    refuse_unlike(target.ref, source.ref);
  }
  if (nbytes_of(source.ref) == 0) return {};
  if (!std::exchange(reaped_, true)) transfers_.reap();
  if (const auto facts = download_by_kernel(source, target, snapshot, pressure)) return *facts;
  if (casts) throw no_kernel_for(source.ref);
  if (snapshot == Snapshot::taken) return copy_behind(source, target);
  if (snapshot != Snapshot::never) {
    if (const auto facts = download_staged(source, target, snapshot, pressure)) return *facts;
  }
  return copy_in_stream(source, target, cuda::Direction::to_host);
}

DownloadFacts Transfers::Batch::upload_pinned(const DeviceTensor& destination, const HostTarget& source) {
  refuse_unlike(destination.ref, source.ref);
  if (nbytes_of(source.ref) == 0) return {};
  if (!std::exchange(reaped_, true)) transfers_.reap();
  return copy_in_stream(destination, source, cuda::Direction::to_device);
}

std::shared_ptr<Pending> Transfers::Batch::close() {
  finish_all();
  reaped_ = false;
  return std::make_shared<Pending>(transfers_.runtime().driver(), std::exchange(events_, {}));
}

// Nothing when it is to be copied on its producer's stream instead.
std::optional<DownloadFacts> Transfers::Batch::download_staged(const DeviceTensor& source, const HostTarget& target,
                                                               Snapshot snapshot, BackPressure pressure) {
  const TransferLimits& limits = transfers_.limits();
  const bool must = snapshot == Snapshot::always;
  const std::size_t nbytes = nbytes_of(source.ref);
  const std::size_t largest = std::min(limits.largest_snapshot_nbytes, limits.staging_nbytes);
  if (nbytes > largest) {
    if (must) throw no_snapshot_of(source.ref, nbytes, largest);
    return std::nullopt;
  }
  const auto moves = staged_moves(source.ref.layout, target.ref.layout, most_moves);
  if (!moves) {
    if (must) throw too_many_pieces(source.ref, most_moves);
    return std::nullopt;
  }
  return with_staging(source, nbytes, must, pressure, [&] { return try_to_stage(source, target, *moves); });
}

std::optional<DownloadFacts> Transfers::Batch::with_staging(const DeviceTensor& source, std::size_t nbytes, bool must,
                                                            BackPressure pressure,
                                                            const std::function<Attempt()>& try_once) {
  const auto give_up = std::chrono::steady_clock::now() + patience_with_others;
  for (bool first = true;; first = false) {
    const Attempt attempt = try_once();
    if (attempt.facts) return attempt.facts;
    if (!attempt.staging) {
      if (transfers_.make_staging(source, must)) continue;
      if (must) throw no_staging(source.device);
      return std::nullopt;
    }
    transfers_.reap();
    if (first) continue;
    if (pressure == BackPressure::raise || (must && pressure == BackPressure::in_stream)) throw nothing_free(nbytes);
    if (pressure == BackPressure::in_stream) return std::nullopt;
    finish_all();
    const bool waited = wait_for_oldest(transfers_.runtime().functions(), *attempt.staging);
    if (!waited && std::chrono::steady_clock::now() > give_up) throw nothing_free(nbytes);
    transfers_.reap();
  }
}

Transfers::Batch::Attempt Transfers::Batch::try_to_stage(const DeviceTensor& source, const HostTarget& target,
                                                         const StagedMoves& moves) {
  cuda::Runtime& runtime = transfers_.runtime();
  const cuda::ContextScope scope = transfers_.enter(source);
  refuse_stream(runtime.functions(), source);
  Attempt attempt{std::nullopt, transfers_.staging(scope)};
  if (!attempt.staging) return attempt;
  const cuda::CUstream stream = runtime.copy_stream(scope, cuda::Direction::to_host, source.stream);
  auto slot = attempt.staging->take(nbytes_of(source.ref), stream, transfers_.limits().most_in_flight);
  if (!slot) return attempt;
  std::vector<Move> out_of = inside_registrations(moves.out_of, HostEnd::destination, target);
  attempt.facts = DownloadFacts{moves.into.size() + out_of.size(), 0, true, false};
  enqueue_on(scope, source, [&](StreamWork& work) {
    if (!work.has_staged()) attempt.staging->order_after_memory(work.stream());
    work.stage(scope, address_of(source.ref), moves.into, source.owner, std::move(slot), address_of(target.ref),
               std::move(out_of), hold_of(target));
  });
  return attempt;
}

// On a stream of ours, after the producer's.
DownloadFacts Transfers::Batch::copy_behind(const DeviceTensor& source, const HostTarget& target) {
  const auto moves = moves_between(source.ref.layout, target.ref.layout, most_moves);
  if (!moves) throw too_many_pieces(source.ref, most_moves);
  std::vector<Move> pieces = inside_registrations(*moves, HostEnd::destination, target);
  const DownloadFacts facts{pieces.size(), 0, true, false};
  const cuda::ContextScope scope = transfers_.enter(source);
  refuse_stream(transfers_.runtime().functions(), source);
  enqueue_on(scope, source, [&](StreamWork& work) {
    work.follow(scope, {address_of(target.ref), address_of(source.ref)}, std::move(pieces), source.owner,
                hold_of(target));
  });
  return facts;
}

DownloadFacts Transfers::Batch::copy_in_stream(const DeviceTensor& tensor, const HostTarget& host,
                                               cuda::Direction direction) {
  const bool to_host = direction == cuda::Direction::to_host;
  const TensorRef& destination = to_host ? host.ref : tensor.ref;
  const TensorRef& source = to_host ? tensor.ref : host.ref;
  auto moves = moves_between(source.layout, destination.layout, most_moves);
  if (!moves) throw too_many_pieces(tensor.ref, most_moves);
  moves = inside_registrations(in_chunks(*moves, transfers_.limits().chunk_nbytes),
                               to_host ? HostEnd::destination : HostEnd::source, host);
  const cuda::ContextScope scope = transfers_.enter(tensor);
  refuse_stream(transfers_.runtime().functions(), tensor);
  enqueue_on(scope, tensor, [&](StreamWork& work) {
    work.copy(scope, to_host ? CopyKind::to_host : CopyKind::to_device, {address_of(destination), address_of(source)},
              *moves, tensor.owner, hold_of(host));
  });
  return {moves->size(), 0, false, true};
}

// The per-thread default stream is another one in another thread, so what is on it is finished within the call.
void Transfers::Batch::enqueue_on(const cuda::ContextScope& scope, const DeviceTensor& tensor,
                                  const std::function<void(StreamWork&)>& enqueue) {
  const auto known =
      std::find_if(works_.begin(), works_.end(), [&](const auto& work) { return work->is_on(scope, tensor.stream); });
  if (known != works_.end()) {
    enqueue(**known);
    return;
  }
  auto made = std::make_unique<StreamWork>(transfers_.runtime(), transfers_.retired(), scope, tensor.stream);
  if (!cuda::belongs_to_calling_thread(tensor.stream)) {
    works_.push_back(std::move(made));
    enqueue(*works_.back());
    return;
  }
  try {
    enqueue(*made);
  } catch (...) {
    const std::exception_ptr failure = std::current_exception();
    made->finish(events_);
    std::rethrow_exception(failure);
  }
  made->finish(events_);
}

void Transfers::Batch::finish_all() {
  std::exception_ptr failure;
  for (const auto& work : std::exchange(works_, {})) {
    try {
      work->finish(events_);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ferry
