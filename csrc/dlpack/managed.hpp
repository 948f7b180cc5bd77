// Ownership of a tensor that some producer manages, and of memory that we export.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "core/tensor_ref.hpp"
#include "dlpack/abi.hpp"

namespace ferry {

// Owns one managed tensor, of either ABI; calls its deleter exactly once.
class ManagedTensor {
 public:
  explicit ManagedTensor(DLManagedTensorVersioned* tensor) noexcept : versioned_(tensor) {}
  explicit ManagedTensor(DLManagedTensor* tensor) noexcept : old_(tensor) {}
  ManagedTensor(ManagedTensor&& other) noexcept
      : versioned_(std::exchange(other.versioned_, nullptr)), old_(std::exchange(other.old_, nullptr)) {}
  ManagedTensor& operator=(ManagedTensor&&) = delete;
  ~ManagedTensor() {
    if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
    if (old_ != nullptr && old_->deleter != nullptr) old_->deleter(old_);
  }

  [[nodiscard]] const DLTensor& tensor() const noexcept {
    return versioned_ != nullptr ? versioned_->dl_tensor : old_->dl_tensor;
  }
  [[nodiscard]] std::uint64_t flags() const noexcept { return versioned_ != nullptr ? versioned_->flags : 0; }
  // A versioned tensor of another major version may only be deleted.
  [[nodiscard]] bool is_readable() const noexcept {
    return versioned_ == nullptr || versioned_->version.major == DLPACK_MAJOR_VERSION;
  }

 private:
  DLManagedTensorVersioned* versioned_ = nullptr;
  DLManagedTensor* old_ = nullptr;
};

// What an exported tensor keeps alive, and how to let go of it (from any thread, at any time).
struct Owner {
  void* object;
  void (*release)(void* object) noexcept;
};

// New managed tensors over `ref`, canonical strides for contiguous data; they own `owner`. nullptr without memory.
[[nodiscard]] DLManagedTensorVersioned* export_versioned(const TensorRef& ref, std::uint64_t flags,
                                                         Owner owner) noexcept;
[[nodiscard]] DLManagedTensor* export_unversioned(const TensorRef& ref, Owner owner) noexcept;

// The same for a packed block in C order, straight from the pieces: the hot path builds no TensorRef.
[[nodiscard]] DLManagedTensorVersioned* export_packed(void* data, DType dtype, std::span<const std::int64_t> shape,
                                                      Owner owner) noexcept;

}  // namespace ferry
