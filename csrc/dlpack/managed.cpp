#include "dlpack/managed.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/checked_math.hpp"
#include "dlpack/describe.hpp"

namespace ferry {
namespace {

// One allocation: the managed struct, the owner, then shape and strides.
template <class Managed>
struct Export {
  Managed managed;
  Owner owner;
  std::int64_t extents[1];
};

template <class Managed>
void delete_export(Managed* managed) noexcept {
  auto* block = static_cast<Export<Managed>*>(managed->manager_ctx);
  block->owner.release(block->owner.object);
  std::free(block);
}

// Everything but the strides, which follow the shape in the same block.
template <class Managed>
Managed* make_export(void* data, DType dtype, std::span<const std::int64_t> shape, Owner owner) noexcept {
  void* memory = std::malloc(sizeof(Export<Managed>) + 2 * shape.size_bytes());
  if (memory == nullptr) return nullptr;
  auto* block = static_cast<Export<Managed>*>(memory);
  block->owner = owner;
  std::copy(shape.begin(), shape.end(), block->extents);
  DLTensor& tensor = block->managed.dl_tensor;
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int>(shape.size());
  tensor.dtype = dtype_to_dlpack(dtype);
  tensor.shape = block->extents;
  tensor.strides = block->extents + shape.size();
  tensor.byte_offset = 0;
  block->managed.manager_ctx = block;
  block->managed.deleter = [](Managed* self) { delete_export(self); };
  return &block->managed;
}

void set_packed_strides(DLTensor& tensor) noexcept {
  std::int64_t packed = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    tensor.strides[i] = packed;
    // Only the strides of an empty shape can overflow, and no address depends on those.
    packed = checked_mul(packed, std::max<std::int64_t>(tensor.shape[i], 1)).value_or(packed);
  }
}

template <class Managed>
Managed* make_export(const TensorRef& ref, Owner owner) noexcept {
  auto* managed = make_export<Managed>(ref.data, ref.dtype, {ref.layout.shape.data(), ref.layout.shape.end()}, owner);
  if (managed == nullptr) return nullptr;
  std::copy_n(element_strides(ref.layout).begin(), ref.layout.ndim(), managed->dl_tensor.strides);
  return managed;
}

void set_version(DLManagedTensorVersioned& managed, std::uint64_t flags) noexcept {
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.flags = flags;
}

}  // namespace

DLManagedTensorVersioned* export_versioned(const TensorRef& ref, std::uint64_t flags, Owner owner) noexcept {
  auto* managed = make_export<DLManagedTensorVersioned>(ref, owner);
  if (managed != nullptr) set_version(*managed, flags);
  return managed;
}

DLManagedTensor* export_unversioned(const TensorRef& ref, Owner owner) noexcept {
  return make_export<DLManagedTensor>(ref, owner);
}

DLManagedTensorVersioned* export_packed(void* data, DType dtype, std::span<const std::int64_t> shape,
                                        Owner owner) noexcept {
  auto* managed = make_export<DLManagedTensorVersioned>(data, dtype, shape, owner);
  if (managed == nullptr) return nullptr;
  set_version(*managed, 0);
  set_packed_strides(managed->dl_tensor);
  return managed;
}

}  // namespace ferry
