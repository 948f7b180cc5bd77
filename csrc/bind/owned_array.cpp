// NumPy frees and resizes an array's memory through the handler that the array holds (NEP 49). Ours are put into the
// single array instead of being made the current one by PyDataMem_SetHandler: that would cost more than all the rest.
// An array keeps its memory in this way, where a base object would make it a view: it owns its data and can be resized.
#include "bind/owned_array.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "bind/execute.hpp"
#include "bind/poison.hpp"
#include "core/checked_math.hpp"
#include "host/pool/aligned_memory.hpp"
#include "host/pool/host_pool.hpp"

namespace ferry::bind {
namespace {

// Tells tracemalloc, as NumPy does about the memory of its arrays; NumPy itself takes it back when it calls the
// handler.
void trace(const void* data, std::size_t nbytes) noexcept {
  constexpr unsigned numpy_domain = 389047;
  // CPython's header declares it without C linkage up to 3.12, so it is looked up by name.
  using Track = int (*)(unsigned, std::uintptr_t, std::size_t);
  static const auto track = reinterpret_cast<Track>(::dlsym(RTLD_DEFAULT, "PyTraceMalloc_Track"));
  if (track != nullptr) track(numpy_domain, reinterpret_cast<std::uintptr_t>(data), nbytes);
}

// What NumPy calls with memory that is not a lease of ours: aligned memory from malloc.
void* new_small(void* /*context*/, std::size_t nbytes) { return aligned_new(nbytes); }

void* new_small_zeros(void* /*context*/, std::size_t count, std::size_t nbytes) {
  if (nbytes != 0 && count > static_cast<std::size_t>(PTRDIFF_MAX) / nbytes) return nullptr;
  std::byte* data = aligned_new(count * nbytes);
  if (data != nullptr) std::memset(data, 0, count * nbytes);
  return data;
}

void* resize_small(void* /*context*/, void* data, std::size_t nbytes) {
  return data == nullptr ? aligned_new(nbytes) : aligned_resize(static_cast<std::byte*>(data), nbytes);
}

void free_small(void* /*context*/, void* data, std::size_t /*nbytes*/) {
  aligned_delete(static_cast<std::byte*>(data));
}

PyDataMem_Handler small_handler{"tensorferry", 1, {nullptr, new_small, new_small_zeros, resize_small, free_small}};

// A lease, in the hands of the array that holds the handler's capsule. The capsule owns the Loan.
struct Loan {
  PyDataMem_Handler handler;
  std::optional<Lease> lease;
  PyObject* capsule;

  [[nodiscard]] bool lent(const void* data) const noexcept { return lease && lease->data() == data; }
};

// Capsules, each with a Loan that has no lease, kept for the next arrays; guarded by the GIL.
constexpr std::size_t spare_capacity = 64;
std::array<PyObject*, spare_capacity> spares;
std::size_t spare_count = 0;

void end_lease(Loan& loan) noexcept {
  loan.lease.reset();
  if (spare_count < spare_capacity) spares[spare_count++] = PyRef::borrow(loan.capsule).release();
}

void free_loan(void* context, void* data, std::size_t nbytes) {
  auto& loan = *static_cast<Loan*>(context);
  if (!loan.lent(data)) return free_small(nullptr, data, nbytes);
  end_lease(loan);
}

// What a lease becomes when it grows or shrinks; the array's handler stays, so small memory may follow a lease.
void* resize_loan(void* context, void* data, std::size_t nbytes) noexcept {
  auto& loan = *static_cast<Loan*>(context);
  if (!loan.lent(data)) return resize_small(nullptr, data, nbytes);
  const std::size_t kept = std::min(nbytes, loan.lease->nbytes());
  try {
    if (nbytes < pooled_from_nbytes) {
      std::byte* small = aligned_new(nbytes);
      if (small == nullptr) return nullptr;
      std::memcpy(small, data, kept);
      end_lease(loan);
      return small;
    }
    Lease other = host_pool().lease(nbytes);
    std::memcpy(other.data(), data, kept);
    loan.lease.emplace(std::move(other));
    return loan.lease->data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void delete_loan(PyObject* capsule) { delete static_cast<Loan*>(PyCapsule_GetContext(capsule)); }

// A capsule whose Loan has no lease.
PyRef loan_capsule() {
  if (spare_count > 0) return PyRef::steal(spares[--spare_count]);
  auto loan = std::make_unique<Loan>();
  loan->handler = {"tensorferry", 1, {loan.get(), new_small, new_small_zeros, resize_loan, free_loan}};
  PyRef capsule = checked(PyCapsule_New(&loan->handler, "mem_handler", nullptr));
  loan->capsule = capsule.get();
  PyCapsule_SetContext(capsule.get(), loan.release());
  PyCapsule_SetDestructor(capsule.get(), delete_loan);
  return capsule;
}

PyObject* small_capsule() {
  static PyObject* const capsule = PyCapsule_New(&small_handler, "mem_handler", nullptr);
  if (capsule == nullptr) throw PythonErrorSet{};
  return capsule;
}

// The array's from now on: the handler frees the memory.
void give_memory(PyObject* array, PyRef handler, std::size_t nbytes) noexcept {
  auto* fields = reinterpret_cast<PyArrayObject_fields*>(array);
  fields->mem_handler = handler.release();
  PyArray_ENABLEFLAGS(reinterpret_cast<PyArrayObject*>(array), NPY_ARRAY_OWNDATA);
  trace(fields->data, nbytes);
}

std::optional<std::size_t> nbytes_of(PyArray_Descr* descr, int ndim, const std::int64_t* shape) noexcept {
  std::optional<std::int64_t> nbytes = PyDataType_ELSIZE(descr);
  for (int i = 0; i < ndim && nbytes; ++i) nbytes = checked_mul(*nbytes, shape[i]);
  if (!nbytes) return std::nullopt;
  return static_cast<std::size_t>(*nbytes);
}

struct AlignedDelete {
  void operator()(std::byte* data) const noexcept { aligned_delete(data); }
};

}  // namespace

PyRef owned_array(PyArray_Descr* descr, int ndim, const std::int64_t* shape, const std::int64_t* strides) {
  const auto nbytes = nbytes_of(descr, ndim, shape);
  if (!nbytes || *nbytes == 0) return make_array(descr, ndim, shape, strides, nullptr, 0);
  if (*nbytes < pooled_from_nbytes) {
    std::unique_ptr<std::byte, AlignedDelete> memory(aligned_new(*nbytes));
    if (!memory) throw std::bad_alloc();
    poison(memory.get(), *nbytes);
    PyRef handler = PyRef::borrow(small_capsule());
    PyRef array = make_array(descr, ndim, shape, strides, memory.get(), NPY_ARRAY_WRITEABLE);
    static_cast<void>(memory.release());  // the array owns it now
    give_memory(array.get(), std::move(handler), *nbytes);
    return array;
  }
  PyRef capsule = loan_capsule();
  std::optional<Lease>& lease = static_cast<Loan*>(PyCapsule_GetContext(capsule.get()))->lease;
  try {
    lease.emplace(host_pool().lease(*nbytes));
  } catch (const std::bad_alloc&) {
    return make_array(descr, ndim, shape, strides, nullptr, 0);  // NumPy says what could not be allocated, and why
  }
  poison(lease->data(), *nbytes);
  PyRef array = make_array(descr, ndim, shape, strides, lease->data(), NPY_ARRAY_WRITEABLE);
  give_memory(array.get(), std::move(capsule), *nbytes);
  return array;
}

}  // namespace ferry::bind
