"""Public functions about pinned memory; each loads its implementation when first called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    from tensorferry.types import Pinned

__all__ = ["empty_like_pinned", "empty_pinned", "hold", "pinned", "zeros_pinned"]

_Array = np.ndarray[Any, Any]


def empty_pinned(shape: Any, dtype: Any = "float32", *, order: str = "C") -> _Array:
    """Return a new array over pinned memory, which CUDA devices copy from and to directly.

    Parameters
    ----------
    shape : int or sequence of int
        Extents.
    dtype : dtype
        Any that tensors and arrays both have, as NumPy, ml_dtypes or torch name it.
    order : {"C", "F"}
        Which axis is packed closest.

    Returns
    -------
    numpy.ndarray
        Writable and uninitialised. Its memory belongs to the pool of pinned results (``options(pinned_nbytes=...)``),
        takes exactly its size, rounded up to pages from 32 KiB on, and goes back there with the last view of it.

    Raises
    ------
    ArgumentError, DTypeError
        For what is no shape, order or dtype.
    MemoryError
        When there is no memory at all.

    Notes
    -----
    Never starts CUDA. While no device is in use in this process the array lies in ordinary memory that is pinned when
    it is first used with one: as ``out=`` of a copy from it, as the source of :func:`to_device`, or in :func:`pinned`.
    Where nothing can be pinned (no driver, beyond the limit, refused by the system) it stays ordinary memory, and
    :func:`describe` says why. Blocks while the system locks new pages, without the GIL.

    Examples
    --------
    >>> import tensorferry as ferry
    >>> batch = ferry.empty_pinned((64, 128), "int16")
    >>> batch.shape, batch.dtype, batch.flags.writeable
    ((64, 128), dtype('int16'), True)
    """
    from tensorferry._memory.pinned_arrays import empty_pinned as implementation

    return untraced(implementation)(shape, dtype, order)


def zeros_pinned(shape: Any, dtype: Any = "float32", *, order: str = "C") -> _Array:
    """Return what :func:`empty_pinned` returns, filled with zeros.

    Parameters
    ----------
    shape, dtype, order
        As for :func:`empty_pinned`.

    Returns
    -------
    numpy.ndarray
        Writable.

    Raises
    ------
    ArgumentError, DTypeError, MemoryError
        As :func:`empty_pinned`.

    Examples
    --------
    >>> import tensorferry as ferry
    >>> ferry.zeros_pinned(3, "uint8")
    array([0, 0, 0], dtype=uint8)
    """
    from tensorferry._memory.pinned_arrays import zeros_pinned as implementation

    return untraced(implementation)(shape, dtype, order)


def empty_like_pinned(x: Any, /, *, dtype: Any = None) -> _Array:
    """Return what :func:`empty_pinned` returns, with the shape, dtype and order of axes of `x`.

    Parameters
    ----------
    x : array, tensor or any producer
        On any device; its values are not read.
    dtype : dtype, optional
        Another one.

    Returns
    -------
    numpy.ndarray
        Writable and packed, its axes in the order of those of `x` (NumPy's order K).

    Raises
    ------
    DTypeError
        For a dtype that tensors and arrays do not share.

    Examples
    --------
    >>> import torch, tensorferry as ferry
    >>> like = ferry.empty_like_pinned(torch.zeros(2, 3).t(), dtype="float64")
    >>> like.shape, like.strides
    ((3, 2), (8, 24))
    """
    from tensorferry._memory.pinned_arrays import empty_like_pinned as implementation

    return untraced(implementation)(x, dtype)


def pinned(*arrays: Any) -> Pinned:
    """Pin the memory of existing arrays, for a ``with`` block or until ``close()``.

    Parameters
    ----------
    *arrays : array, host tensor or buffer
        Each fills one block of memory, in any order of its axes. The pages that it lies in are pinned as a whole; other
        arrays may share them.

    Returns
    -------
    types.Pinned
        Which keeps the arrays alive and, where their owner can be asked to, of their size. Its ``close()``, or the end
        of the block, unregisters the memory. When it is dropped without either, that happens as soon as possible.

    Raises
    ------
    DeviceError
        When no device is in use in this process, when there is no driver, and for what the system or the driver does
        not let be pinned; then nothing is.
    LayoutError
        For arrays with gaps between their elements.

    Notes
    -----
    Blocks while the system locks the pages, without the GIL. Closing waits for tensorferry's own transfers from and to
    the memory; wait for work that others have begun, such as ``tensor.copy_(..., non_blocking=True)``, before. The
    same memory may be pinned several times, and stays so until all have been closed. What is pinned already, by
    tensorferry or others, is only kept alive.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> data = np.arange(1 << 16)
    >>> try:
    ...     with ferry.pinned(data) as held:
    ...         print(held.nbytes)
    ... except ferry.DeviceError as error:  # no device is in use here
    ...     print(error.given)
    pinned() of 524288 bytes
    """
    from tensorferry._memory.pinning import pinned as implementation

    return untraced(implementation)(*arrays)


def hold(array: Any, stream: Any) -> None:
    """Let the memory of a pinned array not be used again before work that is in a stream now is done.

    That is only needed for streams that tensorferry does not know of: it asks for its own, for torch's, and for the
    default streams.

    Parameters
    ----------
    array : array or tensor
        Over memory of :func:`empty_pinned`, of a result, or of a :class:`PinnedPool`.
    stream : stream
        A torch or CuPy stream, an object with ``__cuda_stream__``, or DLPack's number.

    Raises
    ------
    ArgumentError
        For memory that no pool has lent.
    StreamError
        For what is no stream.
    DeviceError
        For a stream that is being captured: replays of a graph have no end, so keep the array as long as the graph.

    Notes
    -----
    Call it after the work was enqueued and before the last view of the array is dropped. Waits for nothing. Does
    nothing for arrays of :func:`empty_pinned` that lie in ordinary memory.

    Examples
    --------
    >>> import tensorferry as ferry
    >>> ferry.hold(ferry.empty_pinned(16), stream=1)
    """
    from tensorferry._memory.holding import hold as implementation

    untraced(implementation)(array, stream)
