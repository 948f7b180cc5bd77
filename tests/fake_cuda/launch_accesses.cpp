#include "launch_accesses.hpp"

#include <cstring>
#include <set>
#include <string_view>

#include "device_memory.hpp"
#include "kernels/kernel_list.hpp"

namespace fake {
namespace {

class Collector {
 public:
  explicit Collector(World& w) : w_(w) {}

  /// False if the word points nowhere.
  bool add(Pointer word) {
    if (const Allocation* owner = w_.arena.find(word, 0)) {
      if (!owner->freed && seen_.insert(owner->begin).second) {
        all.push_back({.address = owner->begin, .nbytes = 1, .writes = true, .allocation = owner->number});
      }
      return true;
    }
    const std::uintptr_t host = host_address_of(w_, word);
    const auto range = w_.host.classify(host, 1);
    if (host == 0 || range.kind != HostKind::pinned) return false;
    if (seen_.insert(range.registration->begin).second) {
      all.push_back({.address = host, .nbytes = 1, .writes = true, .registration = range.registration->number});
    }
    return true;
  }

  /// A table is as it will be only if no work that is still to come may change it.
  void add_table(Pointer table, std::uint64_t count) {
    std::vector<ferry::gpu::Piece> pieces(count);
    const std::size_t nbytes = count * sizeof(ferry::gpu::Piece);
    if (Allocation* owner = w_.arena.find(table, nbytes); owner != nullptr && !owner->freed) {
      const auto writes = [own = owner->number](const Access& access) {
        return access.allocation == own && access.writes;
      };
      if (!w_.engine.pending_on(writes).empty()) return;
      w_.arena.open(*owner);
      std::memcpy(pieces.data(), reinterpret_cast<const void*>(table), nbytes);
      w_.arena.close(*owner);
    } else {
      const std::uintptr_t host = host_address_of(w_, table);
      if (host == 0 || w_.host.classify(host, nbytes).kind != HostKind::pinned) return;
      std::memcpy(pieces.data(), reinterpret_cast<const void*>(host), nbytes);
    }
    for (const auto& piece : pieces) add(piece.address);
  }

  std::vector<Access> all;

 private:
  World& w_;
  std::set<std::uintptr_t> seen_;
};

template <class Args>
void add_table_of(Collector& collector, const std::vector<unsigned char>& arguments) {
  Args args;
  std::memcpy(&args, arguments.data(), sizeof(args));
  collector.add_table(args.pieces.pieces, args.head.count);
}

}  // namespace

std::vector<Access> accesses_of(World& w, const KernelCode& code, const std::vector<unsigned char>& arguments,
                                u64 library) {
  Collector collector(w);
  for (std::size_t at = 0; at + sizeof(Pointer) <= arguments.size(); at += sizeof(Pointer)) {
    Pointer word = 0;
    std::memcpy(&word, &arguments[at], sizeof(word));
    collector.add(word);
  }
  const std::string_view name = code.name;
  if (name == "ferry_gather_table" || name == "ferry_scatter_table") {
    add_table_of<ferry::gpu::GatherTableArgs>(collector, arguments);
  } else if (name == "ferry_gather_store_table") {
    add_table_of<ferry::gpu::GatherStoreTableArgs>(collector, arguments);
  } else if (name == "ferry_gather_slot_table") {
    add_table_of<ferry::gpu::GatherSlotTableArgs>(collector, arguments);
  }
  if (!collector.all.empty()) collector.all.front().library = library;
  return collector.all;
}

}  // namespace fake
