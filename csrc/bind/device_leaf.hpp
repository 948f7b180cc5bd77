// Arrays for torch tensors on CUDA devices about which nothing is special, without any Python code.
#pragma once

#include <optional>

#include "bind/exchange.hpp"
#include "bind/fetch.hpp"
#include "transfer/plan.hpp"

namespace ferry::bind {

// The tensors of one call: enqueued one by one, waited for together.
class DeviceLeaves {
 public:
  // Of this nest, which lives as long as this; null for one tensor.
  explicit DeviceLeaves(PyObject* nest = nullptr) noexcept : nest_(nest) {}

  // The array for a tensor of exact type torch.Tensor or Parameter that fills a block on a CUDA device, or that a
  // kernel of ours packs. Its values are
  // there after settle(): until then nobody else may see it. Nothing for what takes Python to convert, or to refuse;
  // and until Python has once converted a tensor of that device, and told all streams that fences want.
  [[nodiscard]] PyRef add(PyObject* tensor, const FastType& type, const Request& request);

  // Waits for what was added since the last time, without the GIL. Throws PythonErrorSet when a signal ends the wait:
  // then the arrays belong to nobody, and what the device may still touch is held.
  void settle();

 private:
  std::optional<Fetch> fetch_;
  PyObject* nest_;  // until its small tensors were counted
  bool kernels_ = false;
  int device_ = -1;  // of the last tensor, whose stream is not being captured
  cuda::CUstream stream_ = nullptr;
};

// From now on tensors of this device need no Python: torch's streams and memory are known.
void note_known_device(int device) noexcept;

}  // namespace ferry::bind
