// Pinned memory for the Python layer: pools, new arrays, memory of others, and what is known about memory.
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <vector>

#include "bind/descr.hpp"
#include "bind/device_path.hpp"
#include "bind/execute.hpp"
#include "bind/gil.hpp"
#include "bind/host_context.hpp"
#include "bind/names.hpp"
#include "bind/pinnable.hpp"
#include "bind/pinned_place.hpp"
#include "bind/pinned_pools.hpp"
#include "bind/pinning.hpp"
#include "bind/register.hpp"
#include "core/checked_math.hpp"
#include "cuda/driver_error.hpp"
#include "cuda/host_range.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr Names<Fence, 3> fence_names{
    {{{"streams", Fence::streams}, {"context", Fence::context}, {"never", Fence::never}}}};

// pybind11 destroys it with the GIL; the pool's lock may be waited for.
struct PoolDeleter {
  void operator()(PoolHandle* pool) const {
    const GilReleased released(true);
    delete pool;
  }
};

std::shared_ptr<PoolHandle> made_pool(std::size_t limit_nbytes, const std::string& fence) {
  return {new PoolHandle(limit_nbytes, fence_names.value(fence)), PoolDeleter{}};
}

py::object stats_of(PoolHandle& handle) {
  std::optional<PinnedStats> stats;
  {
    const GilReleased released(true);
    if (const auto pool = handle.pool_if_used()) {
      pool->poll();
      stats = pool->stats();
    }
  }
  if (!stats) return py::none();
  py::dict figures;
  figures["in_use_nbytes"] = stats->in_use_nbytes;
  figures["in_use_arrays"] = stats->in_use_leases;
  figures["idle_nbytes"] = stats->idle_nbytes;
  figures["retired_nbytes"] = stats->retired_nbytes;
  figures["abandoned_nbytes"] = stats->abandoned_nbytes;
  figures["limit_nbytes"] = stats->limit_nbytes;
  figures["high_water_nbytes"] = stats->high_water_nbytes;
  figures["hits"] = stats->hits;
  figures["misses"] = stats->misses;
  figures["refusals"] = stats->refusals;
  figures["trims"] = stats->trims;
  figures["fences"] = stats->epochs;
  return figures;
}

std::size_t trimmed(PoolHandle& handle, std::size_t keep_nbytes) {
  const GilReleased released(true);
  sweep_pools();
  const auto pool = handle.pool_if_used();
  if (pool == nullptr) return 0;
  pool->settle();
  return pool->trim(keep_nbytes);
}

py::object new_array(const std::shared_ptr<PoolHandle>& pool, const std::string& dtype, const Shape& shape,
                     const Shape& strides, bool zeros, std::optional<int> torch_device) {
  TensorRef ref;
  ref.dtype = named_dtype(dtype);
  ref.layout = {Extents(std::span<const std::int64_t>(shape)), Extents(std::span<const std::int64_t>(strides)),
                info(ref.dtype).itemsize};
  const auto count = element_count(ref.layout.shape);
  const auto nbytes = count ? checked_mul(*count, ref.layout.itemsize) : std::nullopt;
  if (!nbytes) throw std::bad_alloc();
  PyRef owner = PyRef::borrow(Py_None);
  if (*nbytes > 0) {
    NewMemory memory = memory_to_pin(pool, static_cast<std::size_t>(*nbytes), torch_device);
    ref.data = memory.data;
    owner = std::move(memory.owner);
    if (zeros && !memory.is_zero) {
      const GilReleased released(true);
      std::memset(ref.data, 0, static_cast<std::size_t>(*nbytes));
    }
  }
  return py::reinterpret_steal<py::object>(array_over(ref, ref.dtype, true, std::move(owner)).release());
}

bool pinned_by_others(const HostBytes& bytes) noexcept {
  if (transfers_if_used() == nullptr || bytes.nbytes == 0) return false;
  try {
    const auto device = context_for_pinning(std::nullopt).device;
    return device && pinned_place(bytes, *device);
  } catch (const std::exception&) {
    return false;
  }
}

py::tuple facts_of(std::uintptr_t address, std::size_t nbytes) {
  const HostBytes bytes{reinterpret_cast<std::byte*>(address), nbytes};
  bool is_pinned = false;
  {
    const GilReleased released(true);
    is_pinned = static_cast<bool>(own_pinned_place(bytes));
  }
  if (is_pinned) return py::make_tuple(true, false, "");
  if (const auto known = unpinned(bytes)) return py::make_tuple(false, known->may_be_pinned, known->obstacle);
  {
    const GilReleased released(true);
    is_pinned = pinned_by_others(bytes);
  }
  return py::make_tuple(is_pinned, false, "");
}

bool held(const Source& source, const std::shared_ptr<PoolHandle>& pool, std::int64_t stream,
          std::optional<int> device) {
  const HostBytes bytes = host_bytes(source.ref);
  const GilReleased released(true);
  return hold(bytes, pool.get(), stream, device);
}

py::tuple retired_work() {
  RetireStats stats;
  {
    const GilReleased released(true);
    if (Transfers* used = transfers_if_used()) stats = used->retired().stats();
  }
  return py::make_tuple(stats.pending, stats.abandoned);
}

std::vector<int> devices_in_use() {
  std::vector<int> devices;
  const GilReleased released(true);
  const cuda::DriverInUse in_use = cuda::driver_in_use();
  if (in_use.functions == nullptr) return devices;
  const cuda::Functions& functions = *in_use.functions;
  int count = 0;
  cuda::check(functions, functions.cuDeviceGetCount(&count), "cuDeviceGetCount");
  for (int device = 0; device < count; ++device) {
    unsigned flags = 0;
    int active = 0;
    cuda::check(functions, functions.cuDevicePrimaryCtxGetState(device, &flags, &active), "cuDevicePrimaryCtxGetState");
    if (active != 0) devices.push_back(device);
  }
  return devices;
}

}  // namespace

void register_pinned(py::module_& module) {
  py::class_<PoolHandle, std::shared_ptr<PoolHandle>>(module, "PinnedPool", "A pool of pinned memory.")
      .def(py::init(&made_pool), py::arg("limit_nbytes"), py::arg("fence"))
      .def_static("of_results", &PoolHandle::of_results, "That of results and of empty_pinned().")
      .def("stats", &stats_of, "Its figures; None before its first use.")
      .def("trim", &trimmed, py::arg("keep_nbytes"), "Give idle memory back to the system; returns how many bytes.");
  module.def("new_pinned", &new_array, py::arg("pool"), py::arg("dtype"), py::arg("shape"), py::arg("strides"),
             py::kw_only(), py::arg("zeros"), py::arg("torch_device"),
             "A writable array over memory of the pool, or over ordinary memory where nothing can be pinned.");
  module.def("pinned_facts", &facts_of, py::arg("address"), py::arg("nbytes"),
             "(is it pinned, will it be at its first use with a device, why not); initialises nothing.");
  module.def(
      "is_pinnable", [](const Source& source) { return is_pinnable(host_bytes(source.ref)); }, py::arg("source"),
      "Is it ordinary memory that was asked for as pinned?");
  module.def(
      "pin_on_first_use", [](const Source& source, int device) { pin_waiting(host_bytes(source.ref), device); },
      py::arg("source"), py::arg("device"),
      "Pin memory that waits for its first use with a device; does nothing for other memory.");
  py::class_<Pin>(module, "Pin", "Keeps memory pinned, and its owner alive.")
      .def_property_readonly("in_use", &Pin::in_use, "Does some transfer still need it?")
      .def("close", &Pin::close, "Let go of it.");
  module.def(
      "pin",
      [](const std::vector<const Source*>& sources, const py::object& owner, std::optional<int> torch_device) {
        return pin_memory(sources, PyRef::borrow(owner.ptr()), torch_device);
      },
      py::arg("sources"), py::arg("owner"), py::arg("torch_device"), "Pin all of them, or raise.");
  module.def("hold", &held, py::arg("source"), py::arg("pool"), py::arg("stream"), py::arg("device"),
             "Not lent again before the stream's work of now is done; False for memory that no pool has lent.");
  module.def("retired_work", &retired_work, "(pending, abandoned): what devices may still touch, and what is lost.");
  module.def("devices_in_use", &devices_in_use, "Ordinals of the devices with an active context; initialises nothing.");
}

}  // namespace ferry::bind
