#include "dlpack/managed.hpp"

#include <cstdlib>
#include <new>

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

template <class Managed>
Managed* make_export(const TensorRef& ref, Owner owner) noexcept {
  const int ndim = ref.layout.ndim();
  const auto extra = static_cast<std::size_t>(2 * ndim) * sizeof(std::int64_t);
  void* memory = std::malloc(sizeof(Export<Managed>) + extra);
  if (memory == nullptr) return nullptr;
  auto* block = new (memory) Export<Managed>{};
  std::int64_t* shape = block->extents;
  std::int64_t* strides = shape + ndim;
  std::int64_t packed = 1;
  const bool contiguous = is_c_contiguous(ref.layout);
  for (int i = ndim - 1; i >= 0; --i) {
    shape[i] = ref.layout.shape[i];
    strides[i] = contiguous ? packed : ref.layout.strides[i] / ref.layout.itemsize;
    packed *= shape[i] > 1 ? shape[i] : 1;
  }
  DLTensor& tensor = block->managed.dl_tensor;
  tensor.data = ref.data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = ndim;
  tensor.dtype = dtype_to_dlpack(ref.dtype);
  tensor.shape = shape;
  tensor.strides = strides;
  tensor.byte_offset = 0;
  block->owner = owner;
  block->managed.manager_ctx = block;
  block->managed.deleter = [](Managed* self) { delete_export(self); };
  return &block->managed;
}

}  // namespace

DLManagedTensorVersioned* export_versioned(const TensorRef& ref, std::uint64_t flags, Owner owner) noexcept {
  auto* managed = make_export<DLManagedTensorVersioned>(ref, owner);
  if (managed != nullptr) {
    managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed->flags = flags;
  }
  return managed;
}

DLManagedTensor* export_unversioned(const TensorRef& ref, Owner owner) noexcept {
  return make_export<DLManagedTensor>(ref, owner);
}

}  // namespace ferry
