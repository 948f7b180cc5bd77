#include "bind/owned_tensor.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "bind/exchange.hpp"
#include "core/checked_math.hpp"
#include "dlpack/managed.hpp"
#include "host/pool/aligned_memory.hpp"
#include "host/pool/host_pool.hpp"

namespace ferry::bind {
namespace {

// Memory on its way through DLPack: a lease, or from malloc.
class Memory {
 public:
  explicit Memory(std::size_t nbytes) {
    if (nbytes >= pooled_from_nbytes) {
      lease_.emplace(host_pool().lease(nbytes));
    } else if (small_ = aligned_new(nbytes); small_ == nullptr) {
      throw std::bad_alloc();
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (!lease_) aligned_delete(small_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return lease_ ? lease_->data() : small_; }

 private:
  std::optional<Lease> lease_;
  std::byte* small_ = nullptr;
};

bool torch_takes(DType dtype) noexcept { return info(dtype).numpy_native || dtype == DType::bfloat16; }

}  // namespace

std::optional<OwnedTensor> owned_tensor(DType dtype, const Extents& shape, const Extents& strides) {
  const FastType* torch = torch_tensor_type();
  const auto count = element_count(shape);
  const auto nbytes = count ? checked_mul(*count, info(dtype).itemsize) : std::nullopt;
  if (torch == nullptr || !torch_takes(dtype) || !nbytes || *nbytes == 0) return std::nullopt;
  auto memory = std::make_unique<Memory>(static_cast<std::size_t>(*nbytes));
  OwnedTensor owned;
  owned.ref.data = memory->data();
  owned.ref.dtype = dtype;
  owned.ref.layout = Layout{shape, strides, info(dtype).itemsize};
  const Owner owner{memory.get(), [](void* object) noexcept { delete static_cast<Memory*>(object); }};
  DLManagedTensorVersioned* managed = export_versioned(owned.ref, 0, owner);
  if (managed == nullptr) throw std::bad_alloc();
  static_cast<void>(memory.release());  // the managed tensor's now
  // Those of axes of one element as well, which an export would leave to chance.
  for (int i = 0; i < strides.size(); ++i) managed->dl_tensor.strides[i] = strides[i] / info(dtype).itemsize;
  void* tensor = nullptr;
  if (torch->api->managed_tensor_to_py_object_no_sync(managed, &tensor) != 0) {
    managed->deleter(managed);
    throw PythonErrorSet{};
  }
  owned.tensor = PyRef::steal(static_cast<PyObject*>(tensor));
  return owned;
}

Source owned_source(DType dtype, const Extents& shape, const Extents& strides) {
  const auto count = element_count(shape);
  const auto nbytes = count ? checked_mul(*count, info(dtype).itemsize) : std::nullopt;
  if (!nbytes) throw std::bad_alloc();
  auto memory = std::make_unique<Memory>(static_cast<std::size_t>(std::max<std::int64_t>(*nbytes, 1)));
  Source source;
  source.ref.data = memory->data();
  source.ref.dtype = dtype;
  source.ref.layout = Layout{shape, strides, info(dtype).itemsize};
  constexpr const char* name = "tensorferry.memory";
  source.owner = checked(PyCapsule_New(memory.get(), name, [](PyObject* self) {
    delete static_cast<Memory*>(PyCapsule_GetPointer(self, "tensorferry.memory"));
  }));
  static_cast<void>(memory.release());  // the capsule's now
  return source;
}

}  // namespace ferry::bind
