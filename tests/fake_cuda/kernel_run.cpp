#include "kernel_run.hpp"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

#include "fiber.hpp"
#include "kernel_accesses.hpp"
#include "kernel_memory.hpp"
#include "kernel_shim.hpp"

FakeKernelPlace fake_kernel_place;

namespace fake {
namespace {

std::mutex one_kernel;

struct Image {
  std::uintptr_t begin = 0, end = 0;
};
/// Where this library lies: kernels may read its constants.
const Image& image() {
  static const Image found = [] {
    Image all;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
          std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& part = info->dlpi_phdr[i];
            if (part.p_type != PT_LOAD) continue;
            begin = std::min<std::uintptr_t>(begin, info->dlpi_addr + part.p_vaddr);
            end = std::max<std::uintptr_t>(end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
          }
          const auto own = reinterpret_cast<std::uintptr_t>(&fake_kernel_place);
          if (own < begin || own >= end) return 0;
          *static_cast<Image*>(out) = {begin, end};
          return 1;
        },
        &all);
    return all;
  }();
  return found;
}

std::deque<Fiber>& fibers() {
  static auto& all = *new std::deque<Fiber>;
  return all;
}

enum class Order { ascending, descending, shuffled };

class Run {
 public:
  Run(const KernelCode& code, LaunchShape shape, std::vector<unsigned char> arguments, Device device, u64 seed)
      : memory(code.name, device), code_(code), shape_(shape), arguments_(std::move(arguments)), random_(seed) {
    order_ = static_cast<Order>(random_() % 3);
    for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= arguments_.size(); at += sizeof(std::uintptr_t)) {
      std::uintptr_t word = 0;
      std::memcpy(&word, &arguments_[at], sizeof(word));
      word = memory.translated(word);
      std::memcpy(&arguments_[at], &word, sizeof(word));
    }
  }

  void carry_out() {
    current = this;
    const std::uint32_t first = std::min(shape_.first, shape_.blocks);
    blocks_.resize(std::min(shape_.count, shape_.blocks - first));
    std::iota(blocks_.begin(), blocks_.end(), first);
    std::ranges::shuffle(blocks_, random_);
    fake_kernel_place = {0, shape_.threads, 0, shape_.blocks};
    const std::size_t needed = code_.syncs ? shape_.threads : 1;
    while (fibers().size() < needed) fibers().emplace_back(fibers().size());
    if (code_.syncs) {
      for (const std::uint32_t block : blocks_) {
        if (!ended) run_meeting(block);
      }
    } else {
      fiber = &fibers()[0];
      fiber->start(&Run::all_alone);
      fiber->resume();
    }
    current = nullptr;
  }

  /// Nothing of the launch goes on.
  FAKE_SWITCHES void give_up() {
    ended = true;
    fiber->pause_for_good();
  }

  FAKE_SWITCHES void barrier() {
    const std::uint64_t n = ++barriers_[code_.syncs ? fake_kernel_place.thread : 0];
    const KernelMistakes& mistakes = kernel_mistakes();
    if (is_lost(n, mistakes.lost_barrier, mistakes.barriers_period)) return;
    if (!code_.syncs) {
      memory.wrong("waits at a barrier, and its entry in the list says that it does not");
      give_up();
    }
    states_[fake_kernel_place.thread] = State::waits;
    fiber->pause();
  }

  void fence() {
    const std::uint64_t n = ++fences_;
    const KernelMistakes& mistakes = kernel_mistakes();
    if (!is_lost(n, mistakes.lost_fence, mistakes.fences_period)) memory.log.fence(by());
  }

  /// Its arguments, and the constants of the library.
  bool may_read(std::uintptr_t address) const {
    return address - reinterpret_cast<std::uintptr_t>(arguments_.data()) < arguments_.size() ||
           (address >= image().begin && address < image().end);
  }

  static KernelThread by() { return {fake_kernel_place.block, fake_kernel_place.thread}; }

  static Run* current;
  KernelMemory memory;
  Fiber* fiber = nullptr;
  bool ended = false;

 private:
  enum class State : unsigned char { runs, waits, done };

  static bool is_lost(std::uint64_t n, std::uint64_t lost, std::uint64_t period) {
    return lost != 0 && n >= lost && (n == lost || (period != 0 && (n - lost) % period == 0));
  }

  std::vector<std::uint32_t> threads_in_order() {
    std::vector<std::uint32_t> all(shape_.threads);
    std::iota(all.begin(), all.end(), 0U);
    if (order_ == Order::descending) std::ranges::reverse(all);
    if (order_ == Order::shuffled) std::ranges::shuffle(all, random_);
    return all;
  }

  /// All threads of all blocks one after the other, on one fiber.
  FAKE_SWITCHES static void all_alone() {
    Run& run = *current;
    run.fiber->arrive();
    run.barriers_.assign(1, 0);
    run.call_all();
    run.fiber->pause_for_good();
  }
  void call_all() {
    for (const std::uint32_t block : blocks_) {
      memory.shared.begin_block();
      for (const std::uint32_t thread : threads_in_order()) {
        fake_kernel_place.block = block;
        fake_kernel_place.thread = thread;
        fences_ = 0;
        code_.call(arguments_.data());
      }
    }
  }

  FAKE_SWITCHES static void one_thread() {
    Run& run = *current;
    run.fiber->arrive();
    run.code_.call(run.arguments_.data());
    run.states_[fake_kernel_place.thread] = State::done;
    run.fiber->pause_for_good();
  }

  void run_meeting(std::uint32_t block) {
    memory.shared.begin_block();
    barriers_.assign(shape_.threads, 0);
    states_.assign(shape_.threads, State::runs);
    fences_of_threads_.assign(shape_.threads, 0);
    for (std::uint32_t i = 0; i < shape_.threads; ++i) fibers()[i].start(&Run::one_thread);
    while (!ended) {
      for (const std::uint32_t thread : threads_in_order()) {
        if (ended || states_[thread] == State::done) continue;
        fake_kernel_place.block = block;
        fake_kernel_place.thread = thread;
        fences_ = fences_of_threads_[thread];
        fiber = &fibers()[thread];
        fiber->resume();
        fences_of_threads_[thread] = fences_;
      }
      const auto waiting = std::ranges::count(states_, State::waits);
      if (ended || waiting == 0) return;
      if (waiting != static_cast<std::ptrdiff_t>(shape_.threads)) {
        memory.wrong(text("ended in some threads of a block while others waited at a barrier"));
        ended = true;
        return;
      }
      std::ranges::fill(states_, State::runs);
      memory.log.barrier(block);
      memory.shared.pass_barrier();
    }
  }

  const KernelCode& code_;
  LaunchShape shape_;
  std::vector<unsigned char> arguments_;
  std::mt19937_64 random_;
  Order order_ = Order::ascending;
  std::vector<std::uint32_t> blocks_;
  std::vector<std::uint64_t> barriers_, fences_of_threads_;
  std::uint64_t fences_ = 0;
  std::vector<State> states_;

  friend std::shared_ptr<Landing> fake::run_kernel(const KernelCode&, LaunchShape, std::vector<unsigned char>, Device,
                                                   u64);
};

Run* Run::current = nullptr;

}  // namespace

KernelMistakes& kernel_mistakes() {
  static KernelMistakes mistakes;
  return mistakes;
}

std::shared_ptr<Landing> run_kernel(const KernelCode& code, LaunchShape shape, std::vector<unsigned char> arguments,
                                    Device device, u64 seed) {
  hide_from_sanitizer();  // that kernels run one at a time orders nothing for the host
  std::unique_lock one(one_kernel, std::defer_lock);
  if (!runs_under_lock()) one.lock();  // else nobody else can be here
  show_to_sanitizer();
  auto landing = std::make_shared<Landing>();
  {
    Run run(code, shape, std::move(arguments), device, seed);
    run.carry_out();
    landing->pieces = run.memory.log.in_some_order(run.random_);
    landing->failed = run.ended ? run.memory.failure : success;
  }
  hide_from_sanitizer();
  if (one.owns_lock()) one.unlock();
  show_to_sanitizer();
  return landing;
}

/// An access of the running kernel that is about to happen.
FAKE_SWITCHES void touch(std::uintptr_t address, std::size_t nbytes, bool writes, bool aligned) {
  Run& run = *Run::current;
  if (run.fiber->holds(address)) return;
  if (!writes && run.may_read(address)) return;
  if (!run.memory.touch(Run::by(), address, nbytes, writes, aligned)) run.give_up();
}

}  // namespace fake

void* fake_kernel_shared(const void* key, std::size_t nbytes, std::size_t alignment) {
  fake::Run& run = *fake::Run::current;
  void* place = run.memory.shared.place(key, nbytes, alignment);
  if (place == nullptr) {
    run.memory.wrong("declares more shared memory than there is");
    run.give_up();
  }
  return place;
}

void fake_kernel_barrier() { fake::Run::current->barrier(); }

void fake_kernel_fence() { fake::Run::current->fence(); }

void fake_kernel_store_release(std::uint64_t* at, std::uint64_t value) {
  fake::Run& run = *fake::Run::current;
  if (fake::kernel_mistakes().plain_releases) {
    fake::touch(reinterpret_cast<std::uintptr_t>(at), sizeof(value), true, true);
    *at = value;
  } else if (!run.memory.store_release(fake::Run::by(), at, value)) {
    run.give_up();
  }
}

std::uint32_t fake_kernel_ticket_add(std::uint32_t* counter) {
  const auto address = reinterpret_cast<std::uintptr_t>(counter);
  fake::touch(address, sizeof(*counter), true, true);
  fake::Run::current->memory.log.ticket(fake::Run::by(), address);
  return (*counter)++;
}
