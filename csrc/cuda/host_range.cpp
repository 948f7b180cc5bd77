#include "cuda/host_range.hpp"

#include <array>
#include <cstdint>

#include "cuda/driver_error.hpp"

namespace ferry::cuda {
namespace {

struct Known {
  unsigned memory_type = 0;
  unsigned managed = 0;
  CUdeviceptr start = 0;
  std::size_t nbytes = 0;
};

// All zero for what the driver does not know.
Known ask(const Functions& functions, CUdeviceptr address) {
  Known known;
  std::array<int, 4> attributes{pointer_attribute_memory_type, pointer_attribute_is_managed,
                                pointer_attribute_range_start_addr, pointer_attribute_range_size};
  std::array<void*, 4> values{&known.memory_type, &known.managed, &known.start, &known.nbytes};
  check(functions,
        functions.cuPointerGetAttributes(static_cast<unsigned>(attributes.size()), attributes.data(), values.data(),
                                         address),
        "cuPointerGetAttributes");
  return known;
}

HostRange kind_of(const Known& known) noexcept {
  if (known.memory_type == 0) return HostRange::pageable;
  if (known.managed != 0) return HostRange::managed;
  return known.memory_type == memorytype_host ? HostRange::pinned : HostRange::device;
}

}  // namespace

HostRange classify_host_range(const ContextScope& scope, const void* data, std::size_t nbytes) {
  const Functions& functions = scope.driver().functions();
  const auto address = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
  const Known first = ask(functions, address);
  const Known last = nbytes > 1 ? ask(functions, address + nbytes - 1) : first;
  const HostRange kind = kind_of(first);
  if (kind != kind_of(last)) return HostRange::mixed;
  if (kind != HostRange::pinned) return kind;
  const bool one = first.nbytes != 0 && first.start == last.start && first.nbytes == last.nbytes;
  return one ? HostRange::pinned : HostRange::pinned_in_parts;
}

int device_of(const Functions& functions, CUdeviceptr address) {
  int ordinal = -1;
  int attribute = pointer_attribute_device_ordinal;
  void* value = &ordinal;
  check(functions, functions.cuPointerGetAttributes(1, &attribute, &value, address), "cuPointerGetAttributes");
  if (ordinal >= 0) return ordinal;
  throw Error(ErrorKind::device, "an address that no CUDA device owns", "it was freed, or is host memory",
              "keep its owner alive until the call is done");
}

}  // namespace ferry::cuda
