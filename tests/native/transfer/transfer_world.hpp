// Transfers on the fake driver, next to a framework that makes tensors. What goes wrong is told as text, so that a test
// can also ask that something does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../support.hpp"
#include "core/mutation.hpp"
#include "fake.hpp"
#include "transfer/transfers.hpp"

namespace ferry::test {

using cuda::CUdeviceptr;
using cuda::CUstream;

// Small, so that small tensors meet every limit.
[[nodiscard]] TransferLimits small_limits();

struct WorldOptions {
  const char* schedule = "lazy";
  std::uint64_t seed = 0;
  std::vector<const char*> presets;
  TransferLimits limits = small_limits();
};

// The framework's memory; goes back to its allocator in the order of one stream, as in a caching allocator.
class FrameworkMemory {
 public:
  FrameworkMemory(std::size_t nbytes, CUstream stream, int device);
  FrameworkMemory(const FrameworkMemory&) = delete;
  FrameworkMemory& operator=(const FrameworkMemory&) = delete;
  ~FrameworkMemory();

  // A kernel in this stream that fills the memory.
  void write_later(const std::vector<std::byte>& bytes, CUstream stream) const;
  // The bytes as they are now.
  [[nodiscard]] std::vector<std::byte> peek() const;
  [[nodiscard]] CUdeviceptr address() const noexcept { return address_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 private:
  CUdeviceptr address_;
  std::size_t nbytes_;
  CUstream stream_;
  int device_;
};

class TransferWorld {
 public:
  explicit TransferWorld(const WorldOptions& options);
  TransferWorld(const TransferWorld&) = delete;
  TransferWorld& operator=(const TransferWorld&) = delete;
  ~TransferWorld();

  [[nodiscard]] Transfers& transfers() { return *transfers_; }
  [[nodiscard]] cuda::Runtime& runtime() { return *runtime_; }
  [[nodiscard]] const cuda::Driver& driver() { return *opened_.driver; }

  // A stream of the framework's: of flags 0 it is ordered with the legacy stream, of flags 1 not.
  CUstream made_stream(unsigned flags = 1, int device = 0);

  // A tensor of this layout. A kernel in its stream gives it the values of `image`, holes included.
  [[nodiscard]] DeviceTensor tensor(const Strided& image, CUstream stream, int device = 0);
  [[nodiscard]] static FrameworkMemory& memory_of(const DeviceTensor& tensor);

  // Pinned memory in which a tensor like `like` finds room.
  [[nodiscard]] HostTarget target(const Strided& like, int device = 0);

  // Runs what is pending, and lets go of what is done.
  void settle();
  // The end of everything. What was wrong, and what is left; nothing when all is well.
  [[nodiscard]] std::string end();

 private:
  cuda::OpenedDriver opened_;
  std::unique_ptr<cuda::Runtime> runtime_;
  std::unique_ptr<Transfers> transfers_;
  std::vector<CUstream> streams_;
};

// A C-ordered tensor of random bytes.
[[nodiscard]] Strided packed_image(Random& random, DType dtype, const Extents& shape);

// The values of a tensor, one element after the other in C order, read by a plain loop over the indices.
[[nodiscard]] std::vector<std::byte> values_of(const TensorRef& ref);
// The same of what a device tensor holds now.
[[nodiscard]] std::vector<std::byte> values_on_device(const DeviceTensor& tensor, const Strided& image);

// "" when equal, else what is not.
[[nodiscard]] std::string difference(const std::vector<std::byte>& got, const std::vector<std::byte>& wanted,
                                     const std::string& what);

// What an exception of `run` says; "" when there is none.
template <class Run>
std::string error_text(Run run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// A mutation for as long as it lives.
class Mutated {
 public:
  explicit Mutated(Mutation mutation) { switch_mutation(mutation); }
  Mutated(const Mutated&) = delete;
  Mutated& operator=(const Mutated&) = delete;
  ~Mutated() { switch_mutation(Mutation::none); }
};

}  // namespace ferry::test
