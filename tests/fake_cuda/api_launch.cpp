// Launches of kernels. Arguments are copied when the launch is enqueued or captured.
#include <atomic>

#include "api.hpp"
#include "call.hpp"
#include "kernel_run.hpp"
#include "launch_accesses.hpp"
#include "shared_memory.hpp"

namespace fake {
namespace {

struct Shape {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;

  bool is_possible() const {
    return grid_x - 1 < 0x7FFFFFFFU && grid_y - 1 < 65535 && grid_z - 1 < 65535 && block_x - 1 < 1024 &&
           block_y - 1 < 1024 && block_z - 1 < 64 && block_x * block_y * block_z <= 1024;
  }
  bool is_line() const { return grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1; }
};

/// A kernel that was not loaded before is loaded now, which waits for all work of the context.
Result load_now(World& w, Function function, Lock& lock) {
  if (from_product()) {
    w.report.violation(text(function->code().name, " was loaded by its first launch, which waits for the device"));
  }
  const ThreadState& thread = w.thread();
  if (const Result refused = w.captures.refuse_unsafe(thread.number, thread.capture_mode); refused) return refused;
  ++w.report.counts["lazy_loads"];
  w.engine.finish_all(lock);
  function->loaded = true;
  return success;
}

Result find_function(World& w, Function handle, Function& function) {
  function = handle;
  if (w.programs.functions.knows(handle)) return success;
  if (w.programs.functions.was(handle))
    w.report.violation("a kernel was launched after its library or context was gone");
  return invalid_handle;
}

}  // namespace

Result cuLaunchKernel(Function handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_nbytes, Stream stream, void** parameters,
                      void** extra) {
  const auto arguments = [&](World& w) {
    return text(" ", w.programs.functions.knows(handle) ? handle->code().name : "unknown", " blocks=", grid_x,
                " threads=", block_x, " stream=", w.name_of(stream));
  };
  return call("cuLaunchKernel", Needs::context, arguments, [&](World& w, Lock& lock) -> Result {
    const Shape shape{grid_x, grid_y, grid_z, block_x, block_y, block_z};
    Function function = nullptr;
    Stream at = nullptr;
    if (const Result failed = find_function(w, handle, function); failed != success) return failed;
    const KernelCode& code = function->code();
    if (!shape.is_possible() || shared_nbytes > SharedMemory::room) return invalid_value;
    if (parameters == nullptr || parameters[0] == nullptr || extra != nullptr) return invalid_value;
    if (!shape.is_line()) {
      w.report.violation(text(code.name, " was launched with more than one dimension"));
      return not_supported;
    }
    if (const Result failed = w.resolve(stream, at); failed != success) return failed;
    if (at->context_id != function->context_id) {
      w.report.violation(text(code.name, " was launched in ", at->name, " of another context"));
      return invalid_handle;
    }
    if (!function->loaded) {
      if (const Result failed = load_now(w, function, lock); failed != success) return failed;
    }
    const auto* begin = static_cast<const unsigned char*>(parameters[0]);
    const std::vector<unsigned char> copied(begin, begin + code.argument_nbytes);
    Operation operation;
    operation.name = text(code.name, " in ", at->name);
    operation.accesses = accesses_of(w, code, copied, function->kernel->library->number);
    const u64 seed = w.settings.kernel_seed * 1000003 + ++w.programs.launches * 1009;
    operation.kernel = [&code, copied, seed, runs = std::make_shared<std::atomic<u64>>(0), device = function->device,
                        line = LaunchShape{grid_x, block_x, w.settings.kernel_first_block, w.settings.kernel_blocks}] {
      return run_kernel(code, line, copied, device, seed + (*runs)++);
    };
    w.submit(at, std::move(operation), lock);
    return success;
  });
}

}  // namespace fake
