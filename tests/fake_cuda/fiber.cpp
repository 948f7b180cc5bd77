#include "fiber.hpp"

#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t nbytes);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* saved, const void** bottom, std::size_t* nbytes);
}

#if defined(__x86_64__)
// Saves what a callee must keep, changes stacks, and takes up what was saved there.
asm(R"(
.text
.globl fake_fiber_switch
.hidden fake_fiber_switch
.type fake_fiber_switch, @function
fake_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size fake_fiber_switch, .-fake_fiber_switch
)");
extern "C" void fake_fiber_switch(void** from, void** to);
#endif

namespace fake {
namespace {

constexpr std::size_t stack_nbytes = std::size_t{128} << 10, stack_guard = 4096, stagger = 320;

#if defined(__x86_64__)
void prepare(FiberState& state, std::uintptr_t top, void (*entry)()) {
  auto* at = reinterpret_cast<std::uintptr_t*>(top / 16 * 16) - 1;  // rsp is 8 modulo 16 where a function begins
  *--at = reinterpret_cast<std::uintptr_t>(entry);
  for (int i = 0; i < 6; ++i) *--at = 0;
  state.machine = at;
}
FAKE_SWITCHES void change(FiberState& from, FiberState& to) { fake_fiber_switch(&from.machine, &to.machine); }
void discard(FiberState&) {}
#else
ucontext_t& machine(FiberState& state) {
  if (state.machine == nullptr) state.machine = new ucontext_t;
  return *static_cast<ucontext_t*>(state.machine);
}
void prepare(FiberState& state, std::uintptr_t top, void (*entry)()) {
  ucontext_t& made = machine(state);
  getcontext(&made);
  made.uc_stack.ss_sp = reinterpret_cast<void*>(top - stack_nbytes / 2);
  made.uc_stack.ss_size = stack_nbytes / 2;
  made.uc_link = nullptr;
  makecontext(&made, entry, 0);
}
FAKE_SWITCHES void change(FiberState& from, FiberState& to) { swapcontext(&machine(from), &machine(to)); }
void discard(FiberState& state) { delete static_cast<ucontext_t*>(state.machine); }
#endif

}  // namespace

Fiber::Fiber(std::size_t number) : number_(number) {
  void* memory = mmap(nullptr, stack_guard + stack_nbytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) __builtin_trap();
  mprotect(memory, stack_guard, PROT_NONE);
  stack_ = reinterpret_cast<std::uintptr_t>(memory) + stack_guard;
  nbytes_ = stack_nbytes;
}

Fiber::~Fiber() {
  munmap(reinterpret_cast<void*>(stack_ - stack_guard), stack_guard + stack_nbytes);
  discard(self_);
  discard(caller_);
}

void Fiber::start(void (*entry)()) {
  prepare(self_, stack_ + nbytes_ - number_ % 64 * stagger, entry);
  self_.sanitizer = nullptr;
}

FAKE_SWITCHES void Fiber::resume() {
  if (__sanitizer_start_switch_fiber) {
    __sanitizer_start_switch_fiber(&caller_.sanitizer, reinterpret_cast<void*>(stack_), nbytes_);
  }
  change(caller_, self_);
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(caller_.sanitizer, nullptr, nullptr);
}

FAKE_SWITCHES void Fiber::arrive() {
  if (__sanitizer_finish_switch_fiber) {
    __sanitizer_finish_switch_fiber(self_.sanitizer, &caller_stack_, &caller_nbytes_);
  }
}

FAKE_SWITCHES void Fiber::leave(bool for_good) {
  if (__sanitizer_start_switch_fiber) {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &self_.sanitizer, caller_stack_, caller_nbytes_);
  }
  change(self_, caller_);
  arrive();
}

}  // namespace fake
