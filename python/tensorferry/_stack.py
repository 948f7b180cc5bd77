"""Many tensors of one shape into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorferry import _destination, _torch, _torch_make
from tensorferry._dtypes import NATIVE, resolve
from tensorferry._errors import ArgumentError, AutogradError, BufferMismatchError, DTypeError, LayoutError
from tensorferry._native import core
from tensorferry._options import FromNumpyOptions, choose
from tensorferry._take import Taken, refuse_array, take

__all__ = ["stack"]


def stack(items: Sequence[Any], /, *, to: str = "torch", dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """Stack equal-shaped tensors along a new first axis, in one allocation and one pass.

    Parameters
    ----------
    items : sequence of tensors or arrays
        At least one; any mixture of torch tensors, arrays and DLPack producers of one shape ``(*s)``.
    to : {"torch", "numpy"}
        What to return.
    dtype : dtype, optional
        Values are cast to it in the same pass, by ``casting="same_kind"``. Without it, NumPy's promotion decides;
        dtypes that NumPy does not have must then be equal.
    device : optional
        With ``to="torch"``: where the result goes at last.
    out : ndarray or torch.Tensor, optional
        Filled and returned; shape ``(len(items), *s)``, its dtype wins.

    Returns
    -------
    torch.Tensor or numpy.ndarray
        Private and writable, shape ``(len(items), *s)``, in C order.

    Raises
    ------
    LayoutError
        For no items, or unequal shapes; the first that differs is named.
    AutogradError
        With ``to="torch"``, for items that require grad: the graph would be cut.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.stack([np.zeros(2), np.ones(2)], to="numpy")
    array([[0., 0.],
           [1., 1.]])
    """
    choose("to", to, ("torch", "numpy"))
    if to == "numpy" and device is not None:
        raise ArgumentError(f'device={device!r} with to="numpy"', "arrays live on the host", "leave device out")
    sources = _take_all(items, to)
    shape = (len(sources), *_common_shape(sources))
    wanted = resolve(dtype)
    if out is not None:
        return _fill_given(out, sources, shape, wanted, dtype)
    target = _common_dtype(sources) if wanted == "keep" else _choice(sources, wanted)
    _require_castable(sources, target)
    if to == "numpy":
        result = np.empty(shape, dtype=_numpy_dtype(target))
        _fill(core.Source.from_array(result), sources)
        return result
    import torch

    tensor = torch.empty(shape, dtype=_torch_make.torch_dtype(target), device="cpu")
    _fill(_torch.take(tensor).source, sources)
    return _torch_make.finished(tensor, FromNumpyOptions.parse(device, None, "same_kind", None, "copy", False))


def _take_all(items: Any, to: str) -> list[core.Source]:
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes)):
        raise ArgumentError(f"stack() of a {type(items).__name__}", "it is no sequence", "pass a list of tensors")
    if not items:
        raise LayoutError("stack() of no items", "the shape of the result is not known", "pass at least one tensor")
    if to == "torch":
        _torch.require('stack(to="torch")')
    return [_take_one(i, item, to) for i, item in enumerate(items)]


def _take_one(i: int, item: Any, to: str) -> core.Source:
    if to == "torch" and _torch.is_tensor(item) and item.requires_grad:
        raise AutogradError(
            f"item {i}, which requires grad",
            "copying its values would cut the graph",
            "use torch.stack to stay in the graph, or x.detach() to leave it",
        )
    taken: Taken = take(item)
    if isinstance(item, np.ma.MaskedArray):
        raise DTypeError(f"item {i}, a masked array", "the mask would be lost", "fill it first: x.filled(value)")
    if taken.source is None:
        assert taken.array is not None
        raise refuse_array(taken.array, "a stack")
    return taken.source


def _logical_shape(source: core.Source) -> tuple[int, ...]:
    return tuple(core.decide(source).shape)


def _common_shape(sources: list[core.Source]) -> tuple[int, ...]:
    first = _logical_shape(sources[0])
    for i, source in enumerate(sources):
        shape = _logical_shape(source)
        if shape != first:
            raise LayoutError(
                f"item {i} of shape {shape}",
                f"item 0 has shape {first}, and one array has one shape",
                "bring all items to one shape first (crop, or pad with numpy.pad)",
            )
    return first


def _common_dtype(sources: list[core.Source]) -> str:
    names = sorted({str(NATIVE[source.dtype]["array"]) for source in sources})
    if len(names) == 1:
        return names[0]
    if all(NATIVE[name]["numpy_native"] for name in names):
        return str(np.result_type(*names).name)
    raise DTypeError(
        f"items of dtypes {', '.join(names)}",
        "NumPy has no rule which dtype holds them all",
        'pass dtype=, for example dtype="float32"',
    )


def _choice(sources: list[core.Source], wanted: str) -> str:
    if wanted == "numpy":
        return str(np.result_type(*{NATIVE[source.dtype]["native"] for source in sources}).name)
    if wanted == "bits":
        raise ArgumentError('stack(dtype="bits")', "bits of several dtypes do not mix", "stack views of the bits")
    return wanted


def _require_castable(sources: list[core.Source], target: str) -> None:
    for source in sources:
        core.decide(source, dtype=target)


def _numpy_dtype(name: str) -> Any:
    import ml_dtypes

    return np.dtype(name) if NATIVE[name]["numpy_native"] else np.dtype(getattr(ml_dtypes, name))


def _fill(destination: core.Source, sources: list[core.Source]) -> None:
    for i, source in enumerate(sources):
        core.copy_into(destination.item(i), source)


def _fill_given(out: Any, sources: list[core.Source], shape: tuple[int, ...], wanted: str, dtype: Any) -> Any:
    if _torch.is_tensor(out):
        taken = take(out, move=False)
        if out.requires_grad or taken.moved_from is not None:
            raise BufferMismatchError(
                f"out on device {out.device}, requires_grad={out.requires_grad}",
                "only plain host tensors can be filled",
                "stack to the host first, then copy_",
            )
        destination = taken.source
        assert destination is not None
    else:
        _destination.agreed_dtype(out, wanted, dtype)
        destination = core.Source.from_array(out)
    if tuple(destination.shape) != shape or destination.read_only or destination.layout_facts()["may_overlap_itself"]:
        raise BufferMismatchError(
            f"out of shape {tuple(destination.shape)}",
            f"the result needs writable memory of shape {shape} whose elements do not overlap",
            f"pass an array or tensor of shape {shape}",
        )
    _require_castable(sources, destination.dtype)
    for source in sources:
        _destination.refuse_overlap(destination, source)
    _fill(destination, sources)
    if _torch.is_tensor(out):
        import torch

        torch.autograd.graph.increment_version(out)
    return out
