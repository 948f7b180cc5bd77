// Images to tensors and back; the Python layer has checked shapes, dtypes and numbers.
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bind/gil.hpp"
#include "bind/register.hpp"
#include "bind/source.hpp"
#include "bind/threads.hpp"
#include "host/image.hpp"
#include "host/parallel.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

constexpr std::int64_t release_gil_above_nbytes = 32 * 1024;

struct Axes {
  int channel;
  int row;
  int column;
};

Axes axes_of(const std::string& layout) {
  if (layout == "HWC") return {2, 0, 1};
  if (layout == "CHW") return {0, 1, 2};
  throw py::value_error("unknown layout: " + layout);
}

ImageView view_of(const TensorRef& ref, const Axes& axes, const std::vector<std::int64_t>& order) {
  ImageView view;
  view.data = ref.data;
  view.byte_swapped = ref.byte_swapped;
  view.row_step = ref.layout.strides[axes.row];
  view.column_step = ref.layout.strides[axes.column];
  if (ref.layout.ndim() == 2) return view;
  for (std::size_t c = 0; c < order.size(); ++c) view.channels[c] = order[c] * ref.layout.strides[axes.channel];
  return view;
}

void require(bool holds, const char* what) {
  if (!holds) throw py::value_error(what);
}

void convert(const std::vector<const Source*>& destinations, const std::vector<const Source*>& sources,
             const std::string& to_layout, const std::string& from_layout, const std::vector<std::int64_t>& order,
             const std::vector<double>& scale, const std::vector<double>& shift) {
  require(!sources.empty() && destinations.size() == sources.size(), "one destination for each source");
  require(order.size() <= max_channels && scale.size() == order.size() && shift.size() == order.size(),
          "one number for each channel");
  const Axes to_axes = axes_of(to_layout);
  const Axes from_axes = axes_of(from_layout);
  const auto channels = static_cast<std::int64_t>(order.size());
  std::vector<std::int64_t> in_order(order.size());
  std::vector<PixelMap> maps;
  for (std::size_t c = 0; c < order.size(); ++c) {
    require(order[c] >= 0 && order[c] < channels, "channel out of range");
    in_order[c] = static_cast<std::int64_t>(c);
    maps.push_back(pixel_map(scale[c], shift[c]));
  }

  const TensorRef& one = sources.front()->ref;
  require(one.layout.ndim() == 3 || one.layout.ndim() == 2, "an image has three axes, or two without channels");
  const ImageFormat format{.to = destinations.front()->ref.dtype,
                           .from = one.dtype,
                           .height = one.layout.shape[from_axes.row],
                           .width = one.layout.shape[from_axes.column],
                           .maps = maps};
  require(converts_images(format.to, format.from), "no way between these dtypes");
  std::vector<ImageCopy> images;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto fits = [&](const TensorRef& ref, const Axes& axes, DType dtype) {
      const Extents& shape = ref.layout.shape;
      const bool has_channels = ref.layout.ndim() == 3 && shape[axes.channel] == channels;
      const bool has_none = ref.layout.ndim() == 2 && channels == 1 && axes.row == 0;
      return (has_channels || has_none) && shape[axes.row] == format.height && shape[axes.column] == format.width &&
             ref.dtype == dtype && !ref.conjugated && !ref.negated;
    };
    const TensorRef& to = destinations[i]->ref;
    require(fits(to, to_axes, format.to) && !to.byte_swapped && !to.read_only, "a destination that does not fit");
    require(fits(sources[i]->ref, from_axes, format.from), "a source that does not fit");
    images.push_back({view_of(to, to_axes, in_order), view_of(sources[i]->ref, from_axes, order)});
  }
  const std::int64_t values = static_cast<std::int64_t>(images.size()) * format.height * format.width * channels;
  const std::int64_t nbytes = values * std::max(info(format.to).itemsize, info(format.from).itemsize);
  const ThreadLimit threads(threads_for(nbytes));
  const GilReleased released(nbytes >= release_gil_above_nbytes);
  convert_images(images, format);
}

}  // namespace

void register_image(py::module_& module) {
  module.def("convert_images", &convert, py::arg("destinations"), py::arg("sources"), py::kw_only(),
             py::arg("to_layout"), py::arg("from_layout"), py::arg("order"), py::arg("scale"), py::arg("shift"),
             "Channel c of each destination becomes channel order[c] of its source * scale[c] + shift[c]; layouts are "
             "\"CHW\" and \"HWC\". Blocks until done, without the GIL.");
}

}  // namespace ferry::bind
