#include "faults_of_memory.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

namespace fake {

thread_local bool running_on_device __attribute__((tls_model("initial-exec"))) = false;
thread_local bool running_a_kernel __attribute__((tls_model("initial-exec"))) = false;

namespace {

constexpr std::uintptr_t unit = 4096;  // a page
constexpr std::size_t capacity = 4096;
constexpr unsigned char poison[] = {0xDE, 0xF5};

std::uintptr_t base, size;
std::atomic<unsigned char>* states;  // one for each unit of the arena
struct sigaction previous;

struct Slot {
  std::atomic<bool> full;
  Touch touch;
};
Slot slots[capacity];
std::atomic<std::size_t> written, read;

void handle(int signal, siginfo_t* info, void* machine) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (address - base >= size) {
    if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
      previous.sa_sigaction(signal, info, machine);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
      previous.sa_handler(signal);
    } else {
      sigaction(signal, &previous, nullptr);  // the instruction is tried again, and now it is fatal
    }
    return;
  }
  const auto first = address / unit * unit;
  const auto state = static_cast<PageState>(states[(first - base) / unit].load());
  mprotect(reinterpret_cast<void*>(first), unit, PROT_READ | PROT_WRITE);
  std::memset(reinterpret_cast<void*>(first), poison[state == PageState::freed], unit);
  const std::size_t at = written.load();
  if (at - read.load() >= capacity) return;
  Slot& slot = slots[written.fetch_add(1) % capacity];
  slot.touch = {address, state, running_on_device, running_a_kernel && state != PageState::live};
  slot.full.store(true);
}

}  // namespace

void watch_memory(std::uintptr_t arena, std::size_t nbytes) {
  base = arena;
  size = nbytes;
  void* table =
      mmap(nullptr, nbytes / unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  states = static_cast<std::atomic<unsigned char>*>(table);
  install_handler();
}

void install_handler() {
  struct sigaction now{};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle) return;
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  previous = now;
  sigaction(SIGSEGV, &action, nullptr);
}

void set_page_state(std::uintptr_t begin, std::uintptr_t end, PageState state) {
  for (auto at = begin; at < end; at += unit) states[(at - base) / unit].store(static_cast<unsigned char>(state));
}

std::vector<Touch> take_touches() {
  std::vector<Touch> taken;
  while (read.load() != written.load()) {
    Slot& slot = slots[read.load() % capacity];
    if (!slot.full.exchange(false)) break;  // its handler is still writing: next time
    taken.push_back(slot.touch);
    read.fetch_add(1);
  }
  return taken;
}

}  // namespace fake
