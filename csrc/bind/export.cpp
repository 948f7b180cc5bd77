// DLPack capsules made by us.
#include "bind/export.hpp"

#include "bind/errors.hpp"
#include "bind/gil.hpp"
#include "bind/pinned_memory.hpp"
#include "dlpack/managed.hpp"

namespace ferry::bind {
namespace {

template <class Managed>
void delete_unconsumed(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // renamed by the consumer, who owns the tensor now
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

// Without these a tensor could be exported whose strides DLPack, which counts in elements, cannot say.
void require_whole_strides(const TensorRef& ref) {
  for (int i = 0; i < ref.layout.ndim(); ++i) {
    if (ref.layout.shape[i] > 1 && ref.layout.strides[i] % ref.layout.itemsize != 0) {
      throw Error(ErrorKind::layout, "a tensor whose strides are no multiples of its element size",
                  "DLPack counts strides in elements", "pass copy=True for a packed copy");
    }
  }
}

}  // namespace

PyRef export_capsule(const Source& source, std::uint64_t flags, bool versioned) {
  require_whole_strides(source.ref);
  expose_lease(source.owner.get());
  PyRef held = source.owner;
  const Owner owner{held.get(), release_reference};
  PyRef capsule;
  if (versioned) {
    auto* managed = export_versioned(source.ref, flags, owner);
    if (managed == nullptr) throw std::bad_alloc();
    static_cast<void>(held.release());  // the managed tensor owns it now
    capsule = PyRef::steal(PyCapsule_New(managed, "dltensor_versioned", [](PyObject* self) {
      delete_unconsumed<DLManagedTensorVersioned>(self, "dltensor_versioned");
    }));
    if (!capsule) managed->deleter(managed);
  } else {
    auto* managed = export_unversioned(source.ref, owner);
    if (managed == nullptr) throw std::bad_alloc();
    static_cast<void>(held.release());  // the managed tensor owns it now
    capsule = PyRef::steal(PyCapsule_New(managed, "dltensor",
                                         [](PyObject* self) { delete_unconsumed<DLManagedTensor>(self, "dltensor"); }));
    if (!capsule) managed->deleter(managed);
  }
  if (!capsule) throw PythonErrorSet{};
  return capsule;
}

}  // namespace ferry::bind
