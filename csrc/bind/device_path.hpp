// The process's transfers, the thread that finishes them, and the limits they work in.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "transfer/transfers.hpp"

namespace ferry::bind {

// Made by the first call. Throws Error where there is no driver to work with.
[[nodiscard]] Transfers& transfers();

// The same, null while nobody has used a device, and in a forked child.
[[nodiscard]] Transfers* transfers_if_used() noexcept;

// What is given replaces what holds: the results' limit and the use of kernels at once, the others for devices that
// were not used yet.
void set_transfer_limits(std::optional<std::size_t> results_nbytes, std::optional<std::size_t> ring_nbytes,
                         std::optional<std::size_t> staging_nbytes, std::optional<bool> kernels);
[[nodiscard]] TransferLimits transfer_limits();

// The thread that looks at pending work: releases what is done, calls what waits for it. Without the GIL.
void start_completion_thread();
void stop_completion_thread();
[[nodiscard]] bool completion_thread_runs();
// Calls `then` once, when the work is done or has failed: from the completion thread, or from a later reap() where it
// does not run. In the order of the calls.
void call_when_done(std::shared_ptr<const Pending> pending, std::function<void()> then);
// Work was enqueued that the completion thread does not know of.
void note_pending_work() noexcept;
// One look at everything pending, in the calling thread; hold no lock, and not the GIL.
void reap_now();

}  // namespace ferry::bind
