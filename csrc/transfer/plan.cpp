#include "transfer/plan.hpp"

#include <array>
#include <utility>

#include "core/checked_math.hpp"
#include "core/error.hpp"

namespace ferry {
namespace {

DType chosen_dtype(const TensorRef& source, const Request& request) {
  const DType own = request.target == Target::torch ? source.dtype : array_dtype(source.dtype);
  switch (request.dtype_choice) {
    case DTypeChoice::keep:
      return own;
    case DTypeChoice::native:
      return native_dtype(source.dtype);
    case DTypeChoice::bits:
      return source.dtype;
    case DTypeChoice::named:
      return request.dtype;
  }
  return own;
}

void require_castable(const TensorRef& source, DType from, DType to, Casting casting) {
  if (can_cast(from, to, casting)) return;
  static constexpr std::array<const char*, 6> names{"no", "equiv", "safe", "same_kind", "unsafe", "same_value"};
  throw Error(
      ErrorKind::dtype,
      summary(source) + ", dtype=" + std::string(info(to).name) + ", casting=\"" +
          names[static_cast<std::size_t>(casting)] + "\"",
      "this cast can change values more than the casting rule allows",
      casting == Casting::same_kind || casting == Casting::unsafe
          ? "pass casting=\"unsafe\" to accept that, or casting=\"same_value\" to have every value checked"
          : "pass casting=\"same_kind\" or \"unsafe\" to accept that, or \"same_value\" to have every value checked");
}

std::int64_t counted(const TensorRef& source, std::optional<std::int64_t> size) {
  if (size) return *size;
  throw Error(ErrorKind::layout, summary(source), "the copy would have more bytes than 64 bits can count",
              "convert a part of it at a time, for example x[:1000]");
}

std::int64_t nbytes(const TensorRef& source, const Extents& shape, DType dtype) {
  return counted(source, checked_mul(counted(source, element_count(shape)), info(dtype).itemsize));
}

// Packing and unpacking change the last axis, the only one along which elements share an item.
Extents result_shape(const TensorRef& source, DType to) {
  Extents shape = source.layout.shape;
  const int from_per_item = info(source.dtype).elements_per_item;
  const int to_per_item = info(to).elements_per_item;
  if (from_per_item == to_per_item) return shape;
  if (shape.empty()) {
    throw Error(ErrorKind::layout, summary(source),
                "a packed dtype has two elements an item, and no axis for them here",
                "add an axis first: x.reshape(1)");
  }
  std::int64_t& last = shape[shape.size() - 1];
  last = counted(source, checked_mul(last, from_per_item));
  if (last % to_per_item != 0) {
    throw Error(ErrorKind::layout, summary(source), "torch packs two float4 elements into an item along the last axis",
                "pad the last axis to an even length, or pass dtype=\"float32\"");
  }
  last /= to_per_item;
  return shape;
}

Extents copied_strides(const TensorRef& source, const Decision& decision, Order order) {
  const auto itemsize = std::int64_t{info(decision.value_dtype).itemsize};
  if (decision.shape == source.layout.shape) return packed_strides(source.layout, order, itemsize);
  // Elements that share an item lie along the last axis: what is packed or unpacked is so in C order.
  return contiguous_strides(decision.shape, itemsize, order == Order::fortran ? Order::fortran : Order::c);
}

Extents shared_strides(const TensorRef& source, Target target) {
  if (target == Target::numpy) return source.layout.strides;
  Extents strides = element_strides(source.layout);
  for (int i = 0; i < strides.size(); ++i) strides[i] *= source.layout.itemsize;
  return strides;
}

Causes export_causes(const TensorRef& source, const Request& request, DType to) {
  Causes causes;
  const DType own = array_dtype(source.dtype);
  const bool reinterprets = request.dtype_choice == DTypeChoice::bits;
  causes.add(Cause::unpack, !reinterprets && source.dtype == DType::float4_e2m1fn_x2);
  causes.add(Cause::widen, !reinterprets && source.dtype == DType::complex32 && to == own);
  causes.add(Cause::cast, !reinterprets && to != own);
  // Private memory needs no copy to be handed out writable, unless a write would change several elements.
  causes.add(Cause::overlapping,
             request.private_memory && request.copy == CopyPolicy::always && may_overlap_itself(source.layout));
  return causes;
}

Causes import_causes(const TensorRef& source, const Request& request, DType to) {
  Causes causes;
  const auto itemsize = source.layout.itemsize;
  bool negative = false;
  bool fractional = false;
  for (int i = 0; i < source.layout.ndim(); ++i) {
    if (source.layout.shape[i] <= 1) continue;
    negative = negative || source.layout.strides[i] < 0;
    fractional = fractional || source.layout.strides[i] % itemsize != 0;
  }
  causes.add(Cause::pack, to == DType::float4_e2m1fn_x2 && source.dtype != to);
  causes.add(Cause::cast, to != source.dtype && !causes.has(Cause::pack));
  causes.add(Cause::negative_stride, negative);
  causes.add(Cause::misaligned, fractional || !is_aligned(source));
  if (request.read_only != ReadOnlyPolicy::share) {
    causes.add(Cause::read_only, source.read_only);
    causes.add(Cause::overlapping, may_overlap_itself(source.layout));
  }
  return causes;
}

Causes causes_to_copy(const TensorRef& source, const Request& request, DType to) {
  Causes causes =
      request.target == Target::torch ? import_causes(source, request, to) : export_causes(source, request, to);
  causes.add(Cause::requested, request.copy == CopyPolicy::always && !request.private_memory);
  causes.add(Cause::destination, request.into_destination);
  causes.add(Cause::no_memory, request.no_memory);
  causes.add(Cause::conjugated, source.conjugated);
  causes.add(Cause::negated, source.negated);
  causes.add(Cause::byte_order, source.byte_swapped && info(source.dtype).itemsize > 1);
  causes.add(Cause::order, !satisfies(source.layout, request.order));
  return causes;
}

// The dtypes of values and label, and the casting rule between source and values.
void choose_dtypes(const TensorRef& source, const Request& request, Decision& decision) {
  decision.value_dtype = chosen_dtype(source, request);
  decision.result_dtype = decision.value_dtype;
  if (request.dtype_choice == DTypeChoice::bits) {
    const auto bits = bits_dtype(source.dtype);
    if (!bits) {
      throw Error(ErrorKind::dtype, summary(source) + ", dtype=\"bits\"", "there is no unsigned integer of 16 bytes",
                  "take the parts: torch.view_as_real(x), or x.view(np.float64) on an array");
    }
    decision.result_dtype = *bits;
    return;
  }
  // Packed float4 and complex32 have a form that NumPy can hold; from it the casting rules apply.
  const DType from = array_dtype(source.dtype);
  const DType to = array_dtype(decision.value_dtype);
  if (source.dtype != decision.value_dtype) require_castable(source, from, to, request.casting);
  decision.checks_values = request.casting == Casting::same_value && from != to;
}

std::string joined(const std::vector<std::string>& clauses) {
  std::string text;
  for (const auto& clause : clauses) text += (text.empty() ? "" : ", and ") + clause;
  return text;
}

void refuse_if_sharing_was_demanded(const TensorRef& source, const Request& request, const Causes& causes) {
  if (request.read_only == ReadOnlyPolicy::raise && causes.only(Cause::read_only)) {
    throw Error(ErrorKind::read_only, summary(source) + ", readonly=\"raise\"", joined(causes.explain()),
                "pass readonly=\"copy\" for a private tensor, or readonly=\"share\" and never write to it");
  }
  if (request.copy == CopyPolicy::never) {
    throw Error(ErrorKind::copy_required, summary(source) + ", copy=False", joined(causes.explain()),
                "pass copy=None to copy only when needed, or copy=True for a private writable result");
  }
}

}  // namespace

Decision decide(const TensorRef& source, const Request& request) {
  Decision decision;
  choose_dtypes(source, request, decision);
  decision.shape = result_shape(source, decision.value_dtype);
  decision.causes = causes_to_copy(source, request, decision.value_dtype);
  const bool wants_lazy = request.copy == CopyPolicy::lazy && !request.private_memory;
  if (!decision.causes.any() && (!wants_lazy || request.lazy_possible)) {
    decision.path = wants_lazy ? Path::lazy : Path::view;
    decision.strides = shared_strides(source, request.target);
    decision.writable = request.target == Target::torch || request.copy == CopyPolicy::always;
    return decision;
  }
  decision.causes.add(Cause::held, !decision.causes.any());
  refuse_if_sharing_was_demanded(source, request, decision.causes);
  decision.path = Path::copy;
  decision.writable = request.target == Target::torch || request.copy == CopyPolicy::always || request.into_destination;
  decision.strides = copied_strides(source, decision, request.order);
  decision.nbytes_moved = nbytes(source, decision.shape, decision.value_dtype);
  return decision;
}

}  // namespace ferry
