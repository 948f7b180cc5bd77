#include "pinned/pinned_memory.hpp"

#include <sys/mman.h>

#include <new>
#include <optional>
#include <utility>

#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"
#include "host/pool/block.hpp"

namespace ferry {
namespace {

// Block takes less than this from malloc, whose memory shares pages with others.
constexpr std::size_t block_from_nbytes = mapped_from_nbytes;

class BlockPages final : public PinnedMemory {
 public:
  explicit BlockPages(Block block) noexcept : PinnedMemory(block.data(), block.nbytes()), block_(std::move(block)) {}

 private:
  Block block_;
};

class FewPages final : public PinnedMemory {
 public:
  FewPages(std::byte* data, std::size_t nbytes) noexcept : PinnedMemory(data, nbytes) {}
  ~FewPages() override { ::munmap(data(), nbytes()); }
};

class DriverPages final : public PinnedMemory {
 public:
  DriverPages(const cuda::ContextScope& scope, std::byte* data, std::size_t nbytes) noexcept
      : PinnedMemory(data, nbytes), driver_(scope.driver()), context_(scope.context()) {}
  // A reset has freed what was allocated in the context.
  ~DriverPages() override {
    const cuda::Functions* functions = driver_.functions_if_usable();
    if (functions == nullptr || !cuda::is_alive(*functions, context_)) return;
    cuda::CUcontext current = nullptr;
    std::optional<cuda::PushedContext> pushed;  // any context will do
    if (functions->cuCtxGetCurrent(&current) == cuda::success && current == nullptr) {
      pushed.emplace(driver_, context_.handle);
    }
    const cuda::RelaxedCapture relaxed(*functions, std::nothrow);
    cuda::report_cleanup(functions->cuMemFreeHost(data()), "cuMemFreeHost");
  }

 private:
  const cuda::Driver& driver_;
  cuda::ContextIdentity context_;
};

bool has_another_way(cuda::CUresult code) noexcept {
  return code == cuda::result::invalid_value || code == cuda::result::out_of_memory ||
         code == cuda::result::host_memory_already_registered || code == cuda::result::not_permitted ||
         code == cuda::result::not_supported;
}

}  // namespace

std::unique_ptr<PinnedMemory> mapped_pages(std::size_t nbytes) {
  if (nbytes >= block_from_nbytes) return std::make_unique<BlockPages>(Block(nbytes));
  void* const memory = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  try {
    return std::make_unique<FewPages>(static_cast<std::byte*>(memory), nbytes);
  } catch (...) {
    ::munmap(memory, nbytes);
    throw;
  }
}

std::unique_ptr<PinnedMemory> driver_pages(const cuda::ContextScope& scope, std::size_t nbytes) {
  const cuda::Functions& functions = scope.driver().functions();
  void* memory = nullptr;
  const cuda::RelaxedCapture relaxed(functions);
  const cuda::CUresult code = functions.cuMemHostAlloc(
      &memory, nbytes, cuda::memhostregister_portable | cuda::memhostregister_devicemap);  // the same flags by value
  if (code == cuda::success) {
    try {
      return std::make_unique<DriverPages>(scope, static_cast<std::byte*>(memory), nbytes);
    } catch (...) {
      functions.cuMemFreeHost(memory);
      throw;
    }
  }
  // The answer may be that of earlier work, and the memory allocated all the same.
  if (memory != nullptr) cuda::report_cleanup(functions.cuMemFreeHost(memory), "cuMemFreeHost");
  if (!has_another_way(code)) throw cuda::driver_error(functions, code, "cuMemHostAlloc");
  return nullptr;
}

}  // namespace ferry
