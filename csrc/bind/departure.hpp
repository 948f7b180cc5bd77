// How arrays go to a device, for plans.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bind/source.hpp"
#include "transfer/upload_choice.hpp"

namespace ferry::bind {

struct Departure {
  const char* path;      // as UploadPath has them
  std::size_t launches;  // of kernels
  DType dtype;           // over the link
  std::int64_t nbytes;   // the same
};

// To a new tensor of this dtype and these strides, in bytes. With the GIL, which is dropped meanwhile.
[[nodiscard]] Departure departure_of(const Source& source, DType dtype, const Extents& strides, int device,
                                     bool kernels);

}  // namespace ferry::bind
