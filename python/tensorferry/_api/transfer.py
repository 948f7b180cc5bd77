"""Public conversions from and to devices; each loads its implementation when first called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    from tensorferry.types import Transfer

__all__ = ["to_device", "to_numpy_async"]


def to_numpy_async(
    x: Any,
    /,
    *,
    out: Any = None,
    dtype: Any = None,
    casting: str = "same_kind",
    order: str = "K",
    stream: Any = None,
    pinned: bool | str = "auto",
    snapshot: bool | str = "auto",
) -> Transfer[Any] | Any:
    """Begin to copy a tensor, or a nest of tensors, to NumPy, and return at once.

    The values are those of now, in stream order: what is enqueued later, in place or not, never changes what arrives.

    Parameters
    ----------
    x : tensor, array, DLPack producer or nest
        As for :func:`to_numpy`. All tensors on CUDA devices are enqueued together.
    out : ndarray or nest of them, optional
        Filled and returned; its dtype wins. It is written to while the device works, and by ``result()``.
    dtype, casting, order
        As for :func:`to_numpy`.
    stream : stream, optional
        That the values are ordered in: a torch or CuPy stream, an object with ``__cuda_stream__``, or DLPack's number.
        Without it, each producer's current stream in this thread.
    pinned : {"auto", True, False}
        May, must or shall the values not arrive in pinned memory?
    snapshot : {"auto", True, False}
        "auto" copies to memory on the device first where that fits, so that the producer's stream need not wait for
        the link; True does so or raises; False copies over the link in the producer's stream.

    Returns
    -------
    Transfer
        Whose ``result()`` is what :func:`to_numpy` would have returned, read-only unless `out`.
    GraphSlot
        Instead, when the tensors' streams are being captured into a CUDA graph: each replay fills `out` again. See the
        notes.

    Raises
    ------
    FerryError
        For what :func:`to_numpy` refuses. What the device answers later is raised by ``result()``.

    Notes
    -----
    Blocks for tensors of other devices (copied by torch), for producers whose stream cannot be asked for (DLPack
    capsules, ``__cuda_array_interface__``), for what does not fit into pinned memory, and when everything that
    snapshots need is in use. Host tensors are snapshotted at once, without a copy where torch can copy on write.

    Inside a capture the copies become part of the graph. They need an `out` in memory that was pinned before (for
    example by :func:`empty_pinned`), of the tensor's dtype; nothing is cast, packed or resolved on the way. Everything
    else is refused then, and the capture goes on as it was.

    Examples
    --------
    >>> import torch, tensorferry as ferry
    >>> transfer = ferry.to_numpy_async({"loss": torch.tensor(0.5)})
    >>> transfer.result()
    {'loss': array(0.5, dtype=float32)}
    """
    from tensorferry._convert.to_numpy_async import to_numpy_async as implementation

    return untraced(implementation)(
        x,
        out=out,
        dtype=dtype,
        casting=casting,
        order=order,
        stream=stream,
        pinned=pinned,
        snapshot=snapshot,
    )


def to_device(a: Any, device: Any, /, *, out: Any = None, dtype: Any = None, stream: Any = None) -> Any:
    """Copy an array or host tensor, or a nest of them, to a device, cast and packed on the way.

    Parameters
    ----------
    a : array, host tensor, buffer or nest
        Of any strides, byte order and dtype that torch has.
    device : torch.device, str or int
        Where to. On the host nothing is copied that can be shared.
    out : torch.Tensor or nest of them, optional
        Filled and returned: of that device, of the same shape and without overlap; its dtype wins.
    dtype : dtype, optional
        Values are cast to it by ``casting="same_kind"``; in a nest, of floating and complex leaves only.
    stream : stream, optional
        In which the tensor is filled; as in :func:`to_numpy_async`. Without it, torch's current one.

    Returns
    -------
    torch.Tensor or nest
        Packed in the array's order of axes, or `out`. Ready for later work in the same stream; the source may be
        changed as soon as the call returns.

    Raises
    ------
    DeviceError
        For a device that is not there, and for failures of it.
    AutogradError
        For tensors that require grad: the graph would be cut.
    ArgumentError, BufferMismatchError
        For tensors that are on a device already, and for an `out` that does not fit; nothing was copied then.

    Notes
    -----
    To CUDA through a ring of pinned memory; waits only while all of it is in use. Large arrays in pinned memory are
    read from there by the device, which is waited for. Kernels unpack into strided tensors, and cast to larger
    elements. To other devices by torch, and waits for them.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> ferry.to_device(np.arange(3, dtype=">f8"), "cpu", dtype="float32")
    tensor([0., 1., 2.])
    """
    from tensorferry._convert.to_device import to_device as implementation

    return untraced(implementation)(a, device, out=out, dtype=dtype, stream=stream)
