"""Public questions about tensors and conversions; each loads its implementation when first called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    from tensorferry.types import Description, Explanation, NestDescription, Plan

__all__ = ["check", "describe", "explain", "plan", "shares_memory"]

T = TypeVar("T")


def plan(x: Any, /, *, to: str = "numpy", **arguments: Any) -> Plan:
    """Tell what ``to_numpy(x, **arguments)`` or ``from_numpy(x, **arguments)`` would do now, without doing it.

    Parameters
    ----------
    x : tensor, array or nest
        What would be converted.
    to : {"numpy", "torch"}
        The direction.
    **arguments
        Those of :func:`to_numpy` or :func:`from_numpy`.

    Returns
    -------
    Plan
        For a nest, the sum, with each leaf under ``parts``.

    Raises
    ------
    FerryError
        What the conversion itself would raise.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.plan(np.arange(6.0), copy=True).nbytes_moved
    48
    """
    from tensorferry._plan.planning import plan as implementation

    return untraced(implementation)(x, to=to, **arguments)


def explain(x: Any, /, *, to: str = "numpy", **arguments: Any) -> Explanation:
    """Walk the decision chart for one tensor or array, with the plan at its end.

    Parameters
    ----------
    x : tensor or array
        What would be converted. For a nest, explain its leaves one by one.
    to : {"numpy", "torch"}
        The direction.
    **arguments
        Those of :func:`to_numpy` or :func:`from_numpy`.

    Returns
    -------
    Explanation
        A refused conversion is explained too, with the error's message.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> print(str(ferry.explain(np.arange(3.0)[::-1], to="torch")).splitlines()[-1])
    => copy: float64 (3,), 1 copy, 24 bytes moved: torch has no negative strides
    """
    from tensorferry._plan.explain import explain as implementation

    return untraced(implementation)(x, to=to, **arguments)


def describe(x: Any, /) -> Description | NestDescription:
    """Tell everything about a tensor but its values: dtype, layout, memory, device, autograd, what keeps it alive.

    Parameters
    ----------
    x : tensor, array, DLPack producer, buffer or nest
        Of any shape, dtype and device; also the kinds that ``to_numpy`` refuses (sparse, meta, quantised, ...), whose
        `note` says why.

    Returns
    -------
    Description
        For a nest a NestDescription, with one Description for each tensor under ``parts``.

    Raises
    ------
    DTypeError
        For what is no tensor, no array and no nest.
    LayoutError
        For a nest that contains itself.

    Notes
    -----
    No value is read or copied and no device is started or waited for. `x` stays as it is: flags, version, autograd
    state, and copy-on-write storage, which stays shared (a torch that tells addresses by ``data_ptr()`` alone copies
    it). Three kinds of object are asked to export themselves, which costs what their own code costs: foreign DLPack
    producers, tensor subclasses with their own ``__dlpack__``, and objects with ``__array__``.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.describe(np.zeros((3, 8), np.float32)[:, :4])
    <NumPy array ndarray: float32 (3, 4) on cpu, pitched: 3 rows of 16 bytes, one every 32 bytes, 48 bytes>
    """
    from tensorferry._inspect.describe import describe as implementation

    return untraced(implementation)(x)


def shares_memory(a: Any, b: Any, /) -> bool:
    """Tell whether some byte can be reached through both `a` and `b`.

    Parameters
    ----------
    a, b : tensor, array, DLPack producer or buffer
        Of any shape and dtype, in any mixture.

    Returns
    -------
    bool
        In host memory the exact answer, as ``numpy.shares_memory`` gives it: slices that interleave do not share. Only
        for stride patterns that defeat a bounded search (many axes whose strides have no common order) is it True when
        the address ranges meet. On other devices it is True when device and address ranges meet. Empty tensors and
        tensors without memory (zero tensors) share with nothing.

    Raises
    ------
    LayoutError
        For a nest, and for a tensor without one strided memory, such as a sparse one.
    FerryError
        For anything else that ``to_numpy`` refuses.

    Notes
    -----
    Nothing is read, copied or waited for. Memory that is mapped at two addresses (the same file mapped twice, a tensor
    shared with this process by another) is not recognised. What an object's ``__array__`` gives may be new memory.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> a = np.zeros(8)
    >>> ferry.shares_memory(a[::2], a[1::2]), ferry.shares_memory(a[::2], a[2:3])
    (False, True)
    """
    from tensorferry._inspect.shares_memory import shares_memory as implementation

    return untraced(implementation)(a, b)


def check(
    x: T,
    /,
    *,
    shape: Any = None,
    dtype: Any = None,
    device: Any = None,
    finite: Any = None,
    range: Any = None,
    requires_grad: Any = None,
) -> T:
    """Return `x` unchanged when it is what it must be; otherwise say everything that is wrong with it, at once.

    Parameters
    ----------
    x : tensor, array, DLPack producer, buffer or nest
        What is checked. In a nest every tensor and array must meet the requirements; other leaves pass.
    shape : tuple, optional
        One entry for each axis: an int; None for any extent; a name such as ``"B"`` for an extent that is the same
        wherever the name stands, in this call, in all leaves; ``...``, at most once, for any number of axes.
    dtype : dtype, str or tuple, optional
        A NumPy, ml_dtypes or torch dtype or its name, which must be met exactly, byte order included; or a class:
        "floating", "integer" (both "signed" and "unsigned"), "complex", "bool". A tuple lists alternatives.
    device : str or torch.device, optional
        ``"cuda"`` is met by every CUDA device, ``"cuda:1"`` by one. Arrays are on ``"cpu"``.
    finite : True, optional
        No value is NaN or infinite.
    range : (low, high), optional
        Every value lies between the bounds, which belong to the range; None for no bound. NaN is outside. The
        comparison is exact: no bound and no value is rounded.
    requires_grad : bool, optional
        As torch's flag. Arrays never require grad.

    Returns
    -------
    object
        `x` itself.

    Raises
    ------
    CheckError
        Its ``violations`` are one sentence each; for values with how many there are, the first index in C order, and
        the value there.
    ArgumentError
        For a requirement that makes no sense.
    DTypeError
        When `x` is no tensor, no array and no nest.

    Notes
    -----
    For a nest, any requirement may be a mapping from a container's keys (of a list or tuple: positions; of a dataclass
    or named tuple: field names) to the requirements of its children; a child that is not named is not checked, one
    that is named must be there and be a tensor or array.

    Only `finite` and `range` read values. On another device they are first copied to the host through torch, once for
    each leaf: that waits for the device. Reading copy-on-write storage makes torch give the tensor memory of its own.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> batch = {"image": np.ones((4, 3, 8, 8), np.float32), "label": np.zeros(4, np.int64)}
    >>> shapes = {"image": ("B", 3, "H", "W"), "label": ("B",)}
    >>> ferry.check(batch, shape=shapes, finite=True) is batch
    True
    """
    from tensorferry._check.check import check as implementation

    return untraced(implementation)(
        x, shape=shape, dtype=dtype, device=device, finite=finite, range=range, requires_grad=requires_grad
    )
