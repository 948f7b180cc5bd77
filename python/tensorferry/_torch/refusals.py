"""Tensors that have no single strided memory: each kind is refused by name, with the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorferry._errors import AutogradError, DeviceError, LayoutError

if TYPE_CHECKING:
    import torch

__all__ = ["WRAPPERS", "refuse_layout", "refuse_wrapper"]


class Refusal(NamedTuple):
    """Why tensors of one class are refused, and what to write instead."""

    why: str
    instead: str


# By class name: importing the classes costs seconds, and a name is what the user sees anyway.
WRAPPERS: dict[str, Refusal] = {
    "FakeTensor": Refusal(
        "under FakeTensorMode (export, compile) tensors have shapes but no values", "convert outside of the mode"
    ),
    "FunctionalTensor": Refusal(
        "functionalization (export, compile) replaces tensors by symbols", "convert outside of the traced function"
    ),
    "DTensor": Refusal(
        "it is spread over processes, and only you know whether one part or the whole is meant",
        "take x.to_local() for this rank's part or x.full_tensor() for the whole",
    ),
    "NestedTensor": Refusal(
        "its rows have different lengths, an array's have not",
        "convert the rows one by one: to_numpy(x.unbind()), or the flat values: to_numpy(x.values())",
    ),
    "UninitializedTensorMixin": Refusal(
        "a lazy module has not seen its first input yet, so it has neither shape nor values",
        "run the module once first",
    ),
    "AsyncCollectiveTensor": Refusal("its values are still being communicated", "call x.wait() first"),
}

_SPARSE = Refusal("only some elements are stored", "take x.to_dense(), or convert its indices and values one by one")
_LAYOUTS: dict[str, Refusal] = {
    "torch.sparse_coo": Refusal(
        "only some elements are stored",
        "take x.to_dense(), or convert x.coalesce().indices() and x.coalesce().values()",
    ),
    "torch.sparse_csr": Refusal(
        "only some elements are stored",
        "take x.to_dense(), or convert x.crow_indices(), x.col_indices() and x.values()",
    ),
    "torch.sparse_csc": Refusal(
        "only some elements are stored",
        "take x.to_dense(), or convert x.ccol_indices(), x.row_indices() and x.values()",
    ),
    "torch._mkldnn": Refusal("its memory is in an order that only oneDNN knows", "take x.to_dense()"),
    "torch.jagged": WRAPPERS["NestedTensor"],
}


def refuse_wrapper(x: torch.Tensor) -> None:
    """Raise for tensors whose class keeps the values elsewhere."""
    import torch

    cls = type(x)
    if cls is torch.Tensor or cls is torch.nn.Parameter:
        _refuse_transformed(x)
        return
    for base in cls.__mro__:
        if base.__name__ in WRAPPERS and base.__module__.startswith("torch."):
            why, instead = WRAPPERS[base.__name__]
            raise LayoutError(f"a {cls.__name__}", why, instead)
    overridden = cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if overridden and cls.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl:
        raise LayoutError(
            f"a {cls.__name__}",
            "this subclass computes its own operations (__torch_dispatch__), so its memory may not be its values",
            "convert the tensors it is made of, or what its own conversion method returns",
        )
    _refuse_transformed(x)


def _refuse_transformed(x: torch.Tensor) -> None:
    """Inside ``vmap``, ``grad`` and the like a tensor is a stand-in."""
    import torch

    functorch = getattr(torch._C, "_functorch", None)
    if functorch is None:
        return
    given = "a tensor inside a torch.func transform"
    if functorch.is_batchedtensor(x):
        raise LayoutError(given, "under vmap it stands for a whole batch", "return it, and convert the result outside")
    if functorch.is_gradtrackingtensor(x):
        raise AutogradError(
            given,
            "under grad, jvp or vjp it is being differentiated, and NumPy cannot be",
            "return it as auxiliary output (has_aux=True) and convert it outside",
        )
    if functorch.is_functionaltensor(x) or torch._is_functional_tensor(x):
        why, instead = WRAPPERS["FunctionalTensor"]
        raise LayoutError(given, why, instead)


def refuse_layout(x: torch.Tensor, dtype_name: str) -> None:
    """Raise for tensors that are not strided, have no values, or are quantised by channel."""
    given = f"a {tuple(x.shape) if not x.is_nested else 'nested'} torch.{dtype_name} tensor"
    if x.device.type == "meta":
        raise DeviceError(
            f"{given} on device meta",
            "meta tensors have shapes but no values",
            "materialise it first, for example module.to_empty(device='cpu') and loading its weights",
        )
    if x.is_nested:
        raise LayoutError(given, *WRAPPERS["NestedTensor"])
    if str(x.layout) != "torch.strided":
        raise LayoutError(f"{given} of layout {x.layout}", *_LAYOUTS.get(str(x.layout), _SPARSE))
