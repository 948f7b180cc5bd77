// Images to tensors on their device; the Python layer has checked shapes, dtypes and numbers.
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bind/device_path.hpp"
#include "bind/device_source.hpp"
#include "bind/gil.hpp"
#include "bind/names.hpp"
#include "bind/register.hpp"
#include "host/kernels/pixel_map.hpp"
#include "kernels/grid.hpp"
#include "kernels/image.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw py::value_error(what);
}

std::optional<gpu::Kernel> kernel_for(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return gpu::Kernel::image_float32;
    case DType::float16:
      return gpu::Kernel::image_float16;
    case DType::bfloat16:
      return gpu::Kernel::image_bfloat16;
    default:
      return std::nullopt;
  }
}

gpu::ChannelMap channel_map(double scale, double shift, DType to) {
  const PixelMap map = pixel_map(scale, shift);
  const bool in_parts = map.in_parts && to == DType::float32;
  return {map.scale, map.shift, map.scale_high, map.scale_low, map.shift_high, map.shift_low, in_parts ? 1U : 0U, 0};
}

// Destination (N, C, H, W), source (N, H, W, C) of bytes; both on one device.
gpu::ImageArgs args_for(const DeviceTensor& to, DType dtype, const DeviceTensor& from,
                        const std::vector<std::int64_t>& order, const std::vector<double>& scale,
                        const std::vector<double>& shift) {
  const Extents& shape = from.ref.layout.shape;
  const Extents& to_strides = to.ref.layout.strides;
  const Extents& from_strides = from.ref.layout.strides;
  gpu::ImageArgs args{};
  args.to = device_address(to.ref.data);
  args.from = device_address(from.ref.data);
  args.images = static_cast<std::uint64_t>(shape[0]);
  args.width = static_cast<std::uint64_t>(shape[2]);
  args.to_image = to_strides[0];
  args.to_channel = to_strides[1];
  args.to_row = to_strides[2];
  args.from_image = from_strides[0];
  args.from_row = from_strides[1];
  args.from_column = from_strides[2];
  args.channels = static_cast<std::uint32_t>(order.size());
  for (std::size_t c = 0; c < order.size(); ++c) {
    args.from_channel[c] = order[c] * from_strides[3];
    args.maps[c] = channel_map(scale[c], shift[c], dtype);
  }
  return gpu::image_args(args, static_cast<std::uint64_t>(shape[1]), static_cast<std::uint32_t>(info(dtype).itemsize));
}

bool convert(const DeviceSource& destination, const std::string& dtype_name, const DeviceSource& source,
             const std::vector<std::int64_t>& order, const std::vector<double>& scale,
             const std::vector<double>& shift) {
  const DeviceTensor& to = destination.tensor;
  const DeviceTensor& from = source.tensor;
  const DType dtype = named_dtype(dtype_name);
  const Layout& planes = to.ref.layout;
  const Layout& pixels = from.ref.layout;
  const std::size_t channels = order.size();
  require(planes.ndim() == 4 && pixels.ndim() == 4, "four axes");
  require(from.ref.dtype == DType::uint8 && planes.itemsize == info(dtype).itemsize, "bytes become numbers of a dtype");
  require(to.device == from.device && to.stream == from.stream && !to.ref.read_only, "one device and stream");
  require(channels >= 1 && channels <= gpu::max_channels && scale.size() == channels && shift.size() == channels,
          "one number for each channel");
  require(static_cast<std::size_t>(pixels.shape[3]) == channels && planes.shape[1] == pixels.shape[3] &&
              planes.shape[0] == pixels.shape[0] && planes.shape[2] == pixels.shape[1] &&
              planes.shape[3] == pixels.shape[2],
          "a destination that does not fit");
  for (const std::int64_t c : order) require(c >= 0 && c < pixels.shape[3], "channel out of range");
  if (element_count(pixels.shape).value_or(0) == 0) return true;
  require(to.ref.data != nullptr && from.ref.data != nullptr, "no memory");

  const auto kernel = kernel_for(dtype);
  const bool side_by_side = planes.strides[3] == planes.itemsize || planes.shape[3] == 1;
  if (!kernel || !side_by_side) return false;
  const GilReleased released(true);
  const cuda::ContextScope scope = transfers().enter(to);
  const cuda::Kernels* kernels = transfers().kernels(scope, to.stream);
  if (kernels == nullptr) return false;
  const gpu::ImageArgs args = args_for(to, dtype, from, order, scale, shift);
  const std::uint64_t items = args.images * args.by_height.divisor * args.by_groups.divisor;
  const auto limit = gpu::memory_bound(static_cast<std::uint32_t>(kernels->multiprocessors()));
  kernels->launch(scope, *kernel, gpu::grid_for(items, 1, limit), args, to.stream);
  return true;
}

}  // namespace

void register_device_image(py::module_& module) {
  module.def("convert_images_on_device", &convert, py::arg("destination"), py::arg("dtype"), py::arg("source"),
             py::kw_only(), py::arg("order"), py::arg("scale"), py::arg("shift"),
             "Enqueue the conversion of bytes (N, H, W, C) to planes (N, C, H, W) of a dtype, in the stream that both "
             "are ordered in, which keeps their memory: plane c becomes channel order[c] * scale[c] + shift[c]. False, "
             "with nothing done, where no kernel of ours can.");
}

}  // namespace ferry::bind
