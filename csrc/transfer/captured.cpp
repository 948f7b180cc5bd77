#include "transfer/captured.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/mutation.hpp"
#include "cuda/driver_error.hpp"
#include "transfer/driver_copy.hpp"
#include "transfer/host_target.hpp"
#include "transfer/refusals.hpp"

namespace ferry {
namespace {

constexpr std::size_t most_moves = 1024;

Error not_capturing(const TensorRef& tensor) {
  return {ErrorKind::device, summary(tensor) + " to be copied in a graph",
          "its stream is not being captured, or not any more", "call it while the capture goes on"};
}

Error invalidated(const TensorRef& tensor) {
  return {ErrorKind::device, summary(tensor) + " whose stream's capture was invalidated",
          "a call that is not allowed during a capture has ended it, so that nothing can be added to the graph",
          "end the capture, find that call (the driver's error at the end names its kind), and capture again"};
}

DeviceTensor nothing_in(int device, cuda::CUstream stream) {
  DeviceTensor tensor;
  tensor.device = device;
  tensor.stream = stream;
  return tensor;
}

void add(Holds& holds, const std::shared_ptr<void>& hold, Mutation without) {
  if (hold && !mutated(without)) holds.push_back(hold);
}

}  // namespace

cuda::CUgraph graph_being_captured(const cuda::Functions& functions, const DeviceTensor& tensor) {
  int status = cuda::capture_status_none;
  cuda::CUgraph graph = nullptr;
  cuda::check(functions, functions.cuStreamGetCaptureInfo(tensor.stream, &status, nullptr, &graph, nullptr, nullptr),
              "cuStreamGetCaptureInfo");
  if (mutated(Mutation::ignore_capture)) return graph;
  if (status == cuda::capture_status_invalidated) throw invalidated(tensor.ref);
  if (status != cuda::capture_status_active || graph == nullptr) throw not_capturing(tensor.ref);
  return graph;
}

void CapturedCopies::add(const DeviceTensor& source, const HostTarget& target) {
  refuse_unlike(target.ref, source.ref);
  if (element_count(source.ref.layout.shape).value_or(0) == 0) return;
  auto moves = moves_between(source.ref.layout, target.ref.layout, most_moves);
  if (!moves) throw too_many_pieces(source.ref, most_moves);
  copies_.push_back({source, target, inside_registrations(std::move(*moves), HostEnd::destination, target)});
}

CapturedFacts CapturedCopies::enqueue() {
  CapturedFacts facts;
  facts.held_for_good = !hold_all();
  const cuda::Functions& functions = transfers_.runtime().functions();
  for (const Copy& copy : copies_) {
    const cuda::ContextScope scope = transfers_.enter(copy.source);
    const CopyEnds ends{reinterpret_cast<std::uintptr_t>(copy.target.ref.data),
                        reinterpret_cast<std::uintptr_t>(copy.source.ref.data)};
    for (const Move& move : copy.moves) enqueue_copy(functions, CopyKind::to_host, ends, move, copy.source.stream);
    facts.driver_copies += copy.moves.size();
  }
  copies_.clear();
  return facts;
}

// Before the copies: a graph that replays them must not be without. False when it is for good.
bool CapturedCopies::hold_all() {
  struct OfGraph {
    cuda::CUgraph graph;
    Holds holds;
  };
  const cuda::Functions& functions = transfers_.runtime().functions();
  std::vector<OfGraph> graphs;
  for (const Copy& copy : copies_) {
    const cuda::ContextScope scope = transfers_.enter(copy.source);
    refuse_other_device(functions, copy.source.device);
    const cuda::CUgraph graph = graph_being_captured(functions, copy.source);
    auto known = std::find_if(graphs.begin(), graphs.end(), [&](const OfGraph& one) { return one.graph == graph; });
    if (known == graphs.end()) known = graphs.insert(known, OfGraph{graph, {}});
    const HostHold host = hold_of(copy.target);
    ferry::add(known->holds, copy.source.owner, Mutation::release_source_early);
    ferry::add(known->holds, host.lease, Mutation::reuse_lease_early);
    ferry::add(known->holds, host.owner, Mutation::reuse_lease_early);
  }
  bool told = true;
  for (OfGraph& one : graphs) {
    if (one.graph == nullptr) continue;
    told = transfers_.graph_holds().retain(functions, one.graph, std::move(one.holds)) && told;
  }
  return told;
}

cuda::CaptureState capture_of(Transfers& transfers, int device, cuda::CUstream stream) {
  if (mutated(Mutation::ignore_capture)) return cuda::CaptureState::none;
  const cuda::ContextScope scope = transfers.enter(nothing_in(device, stream));
  return cuda::capture_state(transfers.runtime().functions(), stream);
}

std::shared_ptr<Pending> end_of_work(Transfers& transfers, int device, cuda::CUstream stream) {
  const cuda::ContextScope scope = transfers.enter(nothing_in(device, stream));
  refuse_capture(transfers.runtime().functions(), stream);
  auto event = std::make_shared<const cuda::Event>(transfers.runtime().events().take(scope, cuda::EventUse::waiting));
  event->record(stream);
  return std::make_shared<Pending>(transfers.runtime().driver(),
                                   std::vector<std::shared_ptr<const cuda::Event>>{std::move(event)});
}

}  // namespace ferry
