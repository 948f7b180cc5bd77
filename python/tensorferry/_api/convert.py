"""Public conversions beside ``to_numpy`` and ``from_numpy``; each loads its implementation when first called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    import numpy as np
    import torch

    from tensorferry.types import Producer

__all__ = ["from_dlpack", "register_node", "stack", "to_dlpack", "to_python", "writable"]

T = TypeVar("T")


def to_python(x: Any, /) -> Any:
    """Convert a tensor, or a nest of them, to Python numbers and lists, ready for ``json.dumps``.

    Parameters
    ----------
    x : tensor, array, number or nest
        0-d tensors and NumPy scalars become numbers, others nested lists. Mappings and dataclasses become dicts,
        sequences become lists, arrays of text lists of text. What is no tensor (text, numbers, None) stays as it is.

    Returns
    -------
    object
        bool, int, float or complex numbers (JSON has no complex), lists and dicts. Every value is exact: small floats
        are widened, never rounded.

    Raises
    ------
    FerryError
        For tensors that cannot be converted; the error names the leaf.

    Notes
    -----
    Waits for tensors on CUDA devices once, for others one after the other; host tensors never block.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.to_python({"loss": np.float32(0.5), "sizes": np.arange(3)})
    {'loss': 0.5, 'sizes': [0, 1, 2]}
    """
    from tensorferry._convert.to_python import to_python as implementation

    return untraced(implementation)(x)


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
        With ``to="torch"``, or a tensor as `out`, for items that require grad: the graph would be cut.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.stack([np.zeros(2), np.ones(2)], to="numpy")
    array([[0., 0.],
           [1., 1.]])
    """
    from tensorferry._convert.stack import stack as implementation

    return untraced(implementation)(items, to=to, dtype=dtype, device=device, out=out)


def to_dlpack(x: Any, /, *, copy: bool | None = False, detach: bool = False, writable: bool = False) -> Producer:
    """Offer a tensor to any DLPack consumer, sharing its memory.

    Parameters
    ----------
    x : tensor, array or producer
        In host memory.
    copy : {False, None, True}
        False shares or raises; None copies when sharing is impossible; True always copies.
    detach : bool
        Consent to leaving autograd: without it a tensor that requires grad is refused.
    writable : bool
        Let consumers write; refused where elements overlap. Otherwise the memory of `x` is offered read-only (a copy
        is always writable): a write through another library is invisible to autograd.

    Returns
    -------
    Producer
        An object with ``__dlpack__`` and ``__dlpack_device__``. Strides are canonical for contiguous data.

    Raises
    ------
    BufferError
        Each refusal is one, as the protocol asks, besides being a FerryError.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> np.from_dlpack(ferry.to_dlpack(np.arange(3))).flags.writeable
    False
    """
    from tensorferry._convert.dlpack import to_dlpack as implementation

    return untraced(implementation)(x, copy=copy, detach=detach, writable=writable)


def from_dlpack(
    x: Any, /, *, to: str = "torch", copy: bool | None = False, detach: bool = False, readonly: str = "raise"
) -> Any:
    """Take a tensor from any DLPack producer, as a torch tensor or an array.

    Strict where ``torch.from_dlpack`` and ``numpy.from_dlpack`` are not: negative strides, marks that memory does not
    show and read-only memory are refused or handled, never passed on.

    Parameters
    ----------
    x : object with ``__dlpack__``
        The producer, in host memory.
    to : {"torch", "numpy"}
        What to return. Arrays are read-only unless copied.
    copy : {False, None, True}
        False shares or raises; None copies when sharing is impossible; True always copies.
    detach : bool
        Consent to leaving autograd: without it a tensor that requires grad is refused.
    readonly : {"raise", "copy", "share"}
        With ``to="torch"``, what to do about read-only memory: a torch tensor is always writable. "copy" makes
        ``copy=False`` mean None.

    Raises
    ------
    FerryError
        Naming what was given, why it is refused, and what to write instead.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.from_dlpack(np.arange(3), to="numpy")
    array([0, 1, 2])
    """
    from tensorferry._convert.dlpack import from_dlpack as implementation

    return untraced(implementation)(x, to=to, copy=copy, detach=detach, readonly=readonly)


def writable(t: torch.Tensor, /) -> AbstractContextManager[np.ndarray[Any, Any]]:
    """Give a writable array over a tensor's memory, and tell autograd that it was written to.

    The version counter of the tensor rises on entry and on exit, an exception inside included, so that a backward pass
    that needs the old values raises as it does after an in-place operation of torch. On exit the array becomes
    read-only. Views that were taken of it inside are NumPy's and stay writable: do not keep them.

    Parameters
    ----------
    t : torch.Tensor
        A tensor in host memory, of any dtype that NumPy or ml_dtypes has. With gradient mode on it must not require
        grad: NumPy's writes cannot be differentiated, so say ``torch.no_grad()`` as for any edit of a parameter.

    Yields
    ------
    numpy.ndarray
        Same dtype, shape and memory as `t`. Never blocks, copies nothing.

    Raises
    ------
    AutogradError
        When `t` requires grad and gradient mode is on, or carries a tangent of forward-mode differentiation.
    LayoutError
        When elements of `t` overlap (``expand``), or a subclass says itself how it is read (``__dlpack__``).
    CopyRequiredError
        When memory holds other values than the tensor (conjugate or negative bit, packed dtype), or is elsewhere.

    Examples
    --------
    >>> import torch, tensorferry as ferry
    >>> t = torch.zeros(3)
    >>> with ferry.writable(t) as a:
    ...     a[1] = 5
    >>> t
    tensor([0., 5., 0.])
    """
    from tensorferry._convert.writable import writable as implementation

    return untraced(implementation)(t)


def register_node(cls: type[T], children: Callable[[T], Iterable[Any]], rebuild: Callable[[T, list[Any]], Any]) -> None:
    """Teach tensorferry that instances of `cls` are nests.

    Parameters
    ----------
    cls : type
        Exactly this class; subclasses are registered themselves.
    children : callable
        Takes an instance, returns its children in a fixed order.
    rebuild : callable
        Takes the old instance and the list of converted children, returns a new node.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> class Batch:
    ...     def __init__(self, images): self.images = images
    >>> ferry.register_node(Batch, lambda b: [b.images], lambda b, new: Batch(*new))
    >>> type(ferry.to_numpy(Batch(np.ones(2)))).__name__
    'Batch'
    """
    from tensorferry._nest import register_node as implementation

    return implementation(cls, children, rebuild)
