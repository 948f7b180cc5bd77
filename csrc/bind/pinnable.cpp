#include "bind/pinnable.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "bind/device_path.hpp"
#include "bind/gil.hpp"
#include "bind/host_context.hpp"
#include "bind/owned_tensor.hpp"
#include "bind/pinned_memory.hpp"
#include "core/error.hpp"

namespace ferry::bind {
namespace {

constexpr const char* capsule_name = "tensorferry.pinnable";

// Guarded by the GIL.
// Invariant: the memory is held by exactly one of `lease`, `pages` and `ordinary`, but while it is being pinned, and
// when the driver did not let go of pages that it had refused: those stay for good.
struct Pinnable {
  std::shared_ptr<PoolHandle> pool;
  HostBytes bytes;
  std::unique_ptr<PinnedMemory> pages;
  PyRef ordinary;
  std::shared_ptr<PinnedLease> lease;
  std::string obstacle;

  [[nodiscard]] bool waits() const noexcept { return pages != nullptr && obstacle.empty(); }
};

using Known = std::map<const std::byte*, Pinnable*>;

Known& known() {
  static Known& only = *new Known;
  return only;
}

Pinnable* pinnable_at(const HostBytes& bytes) noexcept {
  const auto behind = known().upper_bound(bytes.begin);
  if (bytes.nbytes == 0 || behind == known().begin()) return nullptr;
  Pinnable* const found = std::prev(behind)->second;
  const auto offset = static_cast<std::size_t>(bytes.begin - found->bytes.begin);
  return offset < found->bytes.nbytes && bytes.nbytes <= found->bytes.nbytes - offset ? found : nullptr;
}

void delete_pinnable(PyObject* capsule) {
  const std::unique_ptr<Pinnable> mine(static_cast<Pinnable*>(PyCapsule_GetPointer(capsule, capsule_name)));
  known().erase(mine->bytes.begin);
}

PyRef capsule_of(std::unique_ptr<Pinnable> memory) {
  known()[memory->bytes.begin] = memory.get();
  PyRef capsule = PyRef::steal(PyCapsule_New(memory.get(), capsule_name, delete_pinnable));
  if (!capsule) {
    known().erase(memory->bytes.begin);
    throw PythonErrorSet{};
  }
  static_cast<void>(memory.release());  // the capsule's now
  return capsule;
}

std::string refusal(const PoolHandle& pool) {
  return "no more can be pinned: the limit is " + std::to_string(pool.limit_nbytes()) +
         " bytes, and the system may allow less";
}

struct Attempt {
  std::shared_ptr<PinnedLease> lease;
  std::string obstacle;  // why there is no lease; empty where there is no context yet
};

Attempt lease_now(PoolHandle& pool, std::size_t nbytes, std::optional<int> torch_device) {
  const HostContext context = context_for_pinning(torch_device);
  if (!context.device) return {nullptr, context.obstacle};
  try {
    const std::shared_ptr<PinnedPool> lender = pool.pool();
    const cuda::ContextScope scope = transfers().runtime().enter(*context.device);
    Attempt attempt{lender->lease(scope, nbytes), ""};
    if (attempt.lease == nullptr) attempt.obstacle = refusal(pool);
    return attempt;
  } catch (const Error& error) {
    return {nullptr, error.given() + ": " + error.why()};
  }
}

Attempt adopt_now(PoolHandle& pool, std::unique_ptr<PinnedMemory>& pages, int device) {
  try {
    const std::shared_ptr<PinnedPool> adopter = pool.pool();
    const cuda::ContextScope scope = transfers().runtime().enter(device);
    Attempt attempt{adopter->adopt(scope, pages), ""};
    if (attempt.lease == nullptr) attempt.obstacle = refusal(pool);
    return attempt;
  } catch (const Error& error) {
    return {nullptr, error.given() + ": " + error.why()};
  }
}

}  // namespace

NewMemory memory_to_pin(const std::shared_ptr<PoolHandle>& pool, std::size_t nbytes, std::optional<int> torch_device) {
  auto made = std::make_unique<Pinnable>();
  made->pool = pool;
  Attempt attempt;
  {
    const GilReleased released(true);
    sweep_pools();
    attempt = lease_now(*pool, nbytes, torch_device);
    if (attempt.lease == nullptr && attempt.obstacle.empty()) made->pages = mapped_pages(pinned_block_nbytes(nbytes));
  }
  if (attempt.lease != nullptr) {
    attempt.lease->expose();
    std::byte* const data = attempt.lease->data();
    return {data, lease_capsule(std::move(attempt.lease)), false};
  }
  const bool waits = made->pages != nullptr;
  if (waits) {
    made->bytes = {made->pages->data(), nbytes};
  } else {
    const Source memory = owned_source(DType::uint8, Extents{static_cast<std::int64_t>(nbytes)}, Extents{1});
    made->ordinary = memory.owner;
    made->bytes = {memory.ref.data, nbytes};
    made->obstacle = std::move(attempt.obstacle);
  }
  std::byte* const data = made->bytes.begin;
  return {data, capsule_of(std::move(made)), waits};
}

std::optional<Unpinned> unpinned(const HostBytes& bytes) {
  const Pinnable* const found = pinnable_at(bytes);
  if (found == nullptr || found->lease != nullptr) return std::nullopt;
  return Unpinned{found->waits(), found->obstacle};
}

Waiting waiting_to_be_pinned(const HostBytes& bytes) {
  const Pinnable* const found = pinnable_at(bytes);
  if (found == nullptr || !found->waits()) return {};
  return {found->pool, found->pages->nbytes()};
}

void pin_waiting(const HostBytes& bytes, int device, bool again) {
  Pinnable* const found = pinnable_at(bytes);  // its array is alive: the caller has it
  if (found == nullptr || !(found->waits() || (again && found->pages != nullptr))) return;
  std::unique_ptr<PinnedMemory> pages = std::move(found->pages);  // nobody else begins meanwhile
  Attempt attempt;
  {
    const GilReleased released(true);
    attempt = adopt_now(*found->pool, pages, device);
    if (attempt.lease != nullptr) attempt.lease->expose();
  }
  found->pages = std::move(pages);
  found->lease = std::move(attempt.lease);
  found->obstacle = std::move(attempt.obstacle);
}

bool is_pinnable(const HostBytes& bytes) { return pinnable_at(bytes) != nullptr; }

}  // namespace ferry::bind
