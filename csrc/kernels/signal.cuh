// Telling the host that all blocks have stored.
//
// The order. Each thread's stores come before its barrier; the barrier makes them known to thread 0 of the block; its
// fence at system scope is cumulative, so it puts what thread 0 knows of before its ticket, for the host too. The block
// that takes the last ticket has read, by the counter's modification order, the tickets of all others; its second fence
// puts their stores, too, before the flag, which is stored with release at system scope. A host that loads the flag
// with acquire and finds the number therefore finds all data of all blocks. Tickets and fences are no locks: no block
// waits for another, so blocks need not be resident together.
//
// The ticket counter is 0 again before the flag is stored, and nobody of this launch touches it any more. The next
// launch that uses it must be ordered behind this one, by its stream or by an event.
#pragma once

#include "kernels/memory.cuh"

namespace ferry::gpu {

// Has every block of the grid come this far? True in one thread of the grid, behind all of its stores.
FERRY_DEVICE bool is_last_to_finish(Address ticket_at) {
  barrier();
  if (thread_index() != 0) return false;
  system_fence();
  auto* ticket = reinterpret_cast<std::uint32_t*>(ticket_at);
  if (ticket_add(ticket) + 1U != blocks_in_grid()) return false;
  store<std::uint32_t>(ticket_at, 0U);
  return true;
}

FERRY_DEVICE void raise_flag(Address flag, std::uint64_t sequence) {
  system_fence();
  store_release_system(reinterpret_cast<std::uint64_t*>(flag), sequence);
}

// Every thread of the grid calls it, behind its last store.
FERRY_DEVICE void signal_when_all_stored(const Signal& signal) {
  if (is_last_to_finish(signal.ticket)) raise_flag(signal.flag, signal.sequence);
}

}  // namespace ferry::gpu
