#include "transfer/plan.hpp"

#include <array>
#include <utility>

#include "core/error.hpp"

namespace ferry {
namespace {

struct CauseText {
  Cause cause;
  const char* text;
};

constexpr std::array<CauseText, 15> cause_texts{{
    {Cause::requested, "a private copy was asked for"},
    {Cause::destination, "a destination was given"},
    {Cause::no_memory, "a zero tensor has no memory to share"},
    {Cause::conjugated, "the conjugate bit is set, so memory holds other values than the tensor"},
    {Cause::negated, "the negative bit is set, so memory holds other values than the tensor"},
    {Cause::byte_order, "the bytes are in the other order than this machine's"},
    {Cause::cast, "the dtype changes"},
    {Cause::unpack, "two elements share a byte and must be unpacked"},
    {Cause::pack, "torch packs two elements of this dtype into a byte"},
    {Cause::widen, "NumPy has no complex32, so it widens to complex64"},
    {Cause::order, "the memory order asked for is not the source's"},
    {Cause::read_only, "the array is read-only and a torch tensor is always writable"},
    {Cause::negative_stride, "torch has no negative strides"},
    {Cause::misaligned, "addresses or strides are no multiples of the element size"},
    {Cause::overlapping, "elements overlap, so a write to one would change others"},
}};

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

void require_castable(const TensorRef& source, DType to, Casting casting) {
  if (can_cast(source.dtype, to, casting)) return;
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

Extents unpacked_shape(const TensorRef& source) {
  Extents shape = source.layout.shape;
  if (info(source.dtype).elements_per_item == 2) {
    if (shape.empty()) {
      throw Error(ErrorKind::layout, summary(source), "a 0-d packed tensor holds two elements and has no axis for them",
                  "add an axis first: x.reshape(1)");
    }
    shape[shape.size() - 1] *= 2;
  }
  return shape;
}

Causes export_causes(const TensorRef& source, const Request& request, DType to) {
  Causes causes;
  const DType own = array_dtype(source.dtype);
  const bool reinterprets = request.dtype_choice == DTypeChoice::bits;
  causes.add(Cause::unpack, !reinterprets && source.dtype == DType::float4_e2m1fn_x2);
  causes.add(Cause::widen, !reinterprets && source.dtype == DType::complex32 && to == own);
  causes.add(Cause::cast, !reinterprets && to != own);
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

std::string joined(const std::vector<std::string>& clauses) {
  std::string text;
  for (const auto& clause : clauses) text += (text.empty() ? "" : ", and ") + clause;
  return text;
}

void refuse_if_sharing_was_demanded(const TensorRef& source, const Request& request, const Causes& causes) {
  if (request.copy == CopyPolicy::never) {
    throw Error(ErrorKind::copy_required, summary(source) + ", copy=False", joined(causes.explain()),
                "pass copy=None to copy only when needed, or copy=True for a private writable result");
  }
  if (request.read_only == ReadOnlyPolicy::raise && causes.has(Cause::read_only)) {
    throw Error(ErrorKind::read_only, summary(source) + ", readonly=\"raise\"", joined(causes.explain()),
                "pass readonly=\"copy\" for a private tensor, or readonly=\"share\" and never write to it");
  }
}

}  // namespace

std::vector<std::string> Causes::explain() const {
  std::vector<std::string> clauses;
  for (const auto& [cause, text] : cause_texts) {
    if (has(cause)) clauses.emplace_back(text);
  }
  return clauses;
}

std::string summary(const TensorRef& source) {
  std::string text = "a (";
  for (int i = 0; i < source.layout.ndim(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(source.layout.shape[i]);
  }
  if (source.layout.ndim() == 1) text += ",";
  return text + ") " + std::string(info(source.dtype).name) + " tensor";
}

Decision decide(const TensorRef& source, const Request& request) {
  Decision decision;
  const bool reinterprets = request.dtype_choice == DTypeChoice::bits;
  decision.value_dtype = chosen_dtype(source, request);
  decision.result_dtype = decision.value_dtype;
  if (reinterprets) {
    const auto bits = bits_dtype(source.dtype);
    if (!bits) {
      throw Error(ErrorKind::dtype, summary(source) + ", dtype=\"bits\"", "there is no unsigned integer of 16 bytes",
                  "take the parts: torch.view_as_real(x), or x.view(np.float64) on an array");
    }
    decision.result_dtype = *bits;
  } else {
    const bool own_conversion = source.dtype == DType::float4_e2m1fn_x2 || source.dtype == DType::complex32 ||
                                decision.value_dtype == DType::float4_e2m1fn_x2;
    const DType from =
        own_conversion && source.dtype != DType::float4_e2m1fn ? array_dtype(source.dtype) : source.dtype;
    const DType to = decision.value_dtype == DType::float4_e2m1fn_x2 ? DType::float4_e2m1fn : decision.value_dtype;
    TensorRef as_cast = source;
    as_cast.dtype = from;
    require_castable(as_cast, to, request.casting);
    decision.checks_values = request.casting == Casting::same_value && from != to;
  }

  Causes& causes = decision.causes;
  causes = request.target == Target::torch ? import_causes(source, request, decision.value_dtype)
                                           : export_causes(source, request, decision.value_dtype);
  causes.add(Cause::requested, request.copy == CopyPolicy::always && !request.private_memory);
  causes.add(Cause::destination, request.into_destination);
  causes.add(Cause::no_memory, request.no_memory);
  causes.add(Cause::conjugated, source.conjugated);
  causes.add(Cause::negated, source.negated);
  causes.add(Cause::byte_order, source.byte_swapped && info(source.dtype).itemsize > 1);
  causes.add(Cause::order, !satisfies(source.layout, request.order));

  decision.shape = reinterprets ? source.layout.shape : unpacked_shape(source);
  if (!causes.any()) {
    const bool lazy = request.copy == CopyPolicy::lazy && request.lazy_possible;
    if (request.copy != CopyPolicy::lazy || lazy || request.private_memory) {
      decision.path = lazy ? Path::lazy : Path::view;
      decision.strides = source.layout.strides;
      if (request.target == Target::torch) {
        decision.strides = element_strides(source.layout);
        for (int i = 0; i < decision.strides.size(); ++i) decision.strides[i] *= source.layout.itemsize;
      }
      decision.writable = request.target == Target::torch || request.copy == CopyPolicy::always;
      return decision;
    }
    causes.add(Cause::requested);
  }
  refuse_if_sharing_was_demanded(source, request, causes);
  decision.path = Path::copy;
  decision.writable = request.target == Target::torch || request.copy == CopyPolicy::always || request.into_destination;
  const auto itemsize = static_cast<std::int64_t>(info(decision.value_dtype).itemsize);
  Layout logical = source.layout;
  logical.shape = decision.shape;
  if (decision.value_dtype == DType::float4_e2m1fn_x2 && source.dtype == DType::float4_e2m1fn) {
    const int last = decision.shape.size() - 1;
    if (decision.shape.empty() || decision.shape[last] % 2 != 0) {
      throw Error(ErrorKind::layout, summary(source), "torch packs two float4 elements into a byte along the last axis",
                  "pad the last axis to an even length, or pass dtype=\"float32\"");
    }
    decision.shape[last] /= 2;
    logical.shape = decision.shape;
    decision.strides = contiguous_strides(decision.shape, itemsize);
  } else if (source.dtype == DType::float4_e2m1fn_x2 && !reinterprets) {
    decision.strides =
        contiguous_strides(decision.shape, itemsize, request.order == Order::fortran ? Order::fortran : Order::c);
  } else {
    decision.strides = packed_strides(logical, request.order, itemsize);
  }
  decision.nbytes_moved = element_count(decision.shape).value_or(0) * itemsize;
  return decision;
}

}  // namespace ferry
