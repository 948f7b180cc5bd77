"""Public functions about files of tensors; each loads its implementation when first called."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    from tensorferry.types import Inspection, SaveReport, Verification

__all__ = ["inspect", "load", "save", "verify"]

_Path = str | os.PathLike[str]


def save(
    tree: Any,
    path: _Path,
    /,
    *,
    format: str | None = None,
    dtype: Any = None,
    durable: bool = False,
    progress: Callable[[int, int | None], object] | None = None,
    overwrite: bool = False,
    checksum: Literal["crc32c"] | None = None,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
    max_staging_bytes: int | str = 64 << 20,
) -> SaveReport:
    """Write tensors to a file or folder: whole, or nothing appears at the path.

    Parameters
    ----------
    tree : tensor, nest, or iterable of (str, tensor)
        Tensors of any device, layout and dtype, arrays, and numbers. The names of a nest are its keys, fields and
        positions, joined with a dot. An iterator, and what is no collection, is consumed one item at a time: each is
        written before the next one is asked for, so that tensors may be made on the way, in the same memory even.
    path : path
        Its end says the format: ``.safetensors``, ``.npy`` (one array), ``.npz``, or ``/`` for a folder of ``.npy``
        files with an index; through other libraries ``.zarr``, and for columns of equally many rows ``.parquet`` and
        ``.arrow``. Its folder must exist. A URL such as ``s3://...`` gets the whole file after it was written here.
    format : {"safetensors", "npy", "npz", "folder", "zarr", "parquet", "arrow"}, optional
        The format, where the end of the path does not say it.
    dtype : dtype, str or mapping, optional
        Convert on the way, as :func:`to_numpy` does; in a nest, floating and complex tensors only.
    durable : bool
        Return when files and names are on the disk, and would survive a loss of power. Without it they survive a crash
        of the process, and the system writes them when it likes.
    progress : callable, optional
        Called in this thread with the bytes handed over so far, and with the bytes in total, None where an iterator
        does not tell. What it raises ends the save.
    overwrite : bool
        May something at the path be replaced, in one step? A folder only when tensorferry made it.
    checksum : {"crc32c"}, optional
        Note a sum of each tensor, taken while it is written, for :func:`verify`. Needs google-crc32c.
    metadata : mapping of str to str, optional
        Stored beside the tensors; :func:`inspect` shows it.
    max_shard_size : int or str, optional
        For ``.safetensors``: bytes of tensors in a file at most, such as "5GB". More become several files and an index,
        as Hugging Face's libraries read them.
    max_staging_bytes : int or str
        Bytes of memory for what cannot be written from where it lies: tensors on devices, strided ones, those that are
        converted, and very small ones. At least 64 KiB.

    Returns
    -------
    SaveReport
        Paths, bytes, seconds, and how it was written.

    Raises
    ------
    ExportError
        An ``OSError``: no space, no rights, something at the path, a name or dtype that the format cannot hold. It says
        what is there now; nothing new is.
    ArgumentError, DTypeError, LayoutError
        For tensors that cannot be converted, as for :func:`to_numpy`; the error names the tensor.

    Notes
    -----
    Waits for devices that tensors are on, and for the files. Host tensors that are contiguous are written from where
    they lie, without the GIL. They must not change until the call returns. Only what a view shows is written, never the
    whole storage. The same tensor twice is written once, and its other name noted; iterators are not searched for
    such ties.

    A dtype that a format has no word for is written as bits with a tag, and :func:`load` restores it.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorferry as ferry
    >>> folder = tempfile.mkdtemp()
    >>> report = ferry.save({"layer": {"weight": np.ones((2, 3))}}, f"{folder}/model.safetensors")
    >>> report.tensors, report.nbytes
    (1, 48)
    >>> ferry.load(f"{folder}/model.safetensors")["layer.weight"].shape
    (2, 3)
    """
    from tensorferry._io.save import save as implementation

    return untraced(implementation)(
        tree,
        path,
        format=format,
        dtype=dtype,
        durable=durable,
        progress=progress,
        overwrite=overwrite,
        checksum=checksum,
        metadata=metadata,
        max_shard_size=max_shard_size,
        max_staging_bytes=max_staging_bytes,
    )


def load(path: _Path, /, *, mmap: bool = True, to: Literal["numpy", "torch"] = "numpy") -> Any:
    """Read tensors from a file or folder, with their dtypes. Never runs code from it: there are no pickles.

    Parameters
    ----------
    path : path
        A ``.safetensors`` (also in shards: of the whole model, or of its index), ``.npy`` or ``.npz`` file, or a folder
        that :func:`save` made; ``.zarr``, ``.parquet`` and ``.arrow`` by their own libraries. Files of other programs
        are read as well. A URL is fetched first.
    mmap : bool
        Map the file: values are read from the disk when they are looked at. Otherwise they are read now.
    to : {"numpy", "torch"}
        Arrays, or tensors on the host.

    Returns
    -------
    dict of str to array or tensor
        By name; for a ``.npy`` file the array or tensor itself. Mapped arrays are read-only. Mapped tensors, and what
        was read, may be written to: the file never changes. The names of tied tensors give the same object.

    Raises
    ------
    ExportError
        For a file that is not there, damaged or cut off, or that holds Python objects.
    DTypeError
        With ``to="torch"``, for dtypes that torch lacks.

    Notes
    -----
    Waits for the disk only with ``mmap=False`` and for compressed archives. A mapped file that is replaced by
    :func:`save` stays as it was for who has mapped it.

    Examples
    --------
    >>> import tempfile, torch, tensorferry as ferry
    >>> path = f"{tempfile.mkdtemp()}/x.npy"
    >>> report = ferry.save(torch.tensor([1.0, 2.0], dtype=torch.bfloat16), path)
    >>> ferry.load(path, to="torch")
    tensor([1., 2.], dtype=torch.bfloat16)
    """
    from tensorferry._io.load import load as implementation

    return untraced(implementation)(path, mmap=mmap, to=to)


def verify(path: _Path, /) -> Verification:
    """Check that a file is whole, and that its values have the checksums that were noted.

    Parameters
    ----------
    path : path
        As for :func:`load`.

    Returns
    -------
    Verification
        How many tensors were there, and how many had a checksum. Archives (``.npz``) have sums of their own as well.

    Raises
    ------
    ExportError
        For anything that does not fit; names the tensors.
    MissingDependencyError
        When checksums are there and google-crc32c is not.

    Notes
    -----
    Reads everything that has a checksum from the disk.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorferry as ferry
    >>> path = f"{tempfile.mkdtemp()}/x.npz"
    >>> report = ferry.save({"a": np.ones(3)}, path, checksum="crc32c")
    >>> ferry.verify(path).checked
    1
    """
    from tensorferry._io.verify import verify as implementation

    return untraced(implementation)(path)


def inspect(path: _Path, /) -> Inspection:
    """Tell what a file holds: names, dtypes, shapes, bytes, checksums and metadata; no values are read.

    Parameters
    ----------
    path : path
        As for :func:`load`.

    Returns
    -------
    Inspection
        Its ``str`` is a table.

    Raises
    ------
    ExportError
        As for :func:`load`.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorferry as ferry
    >>> path = f"{tempfile.mkdtemp()}/x.safetensors"
    >>> report = ferry.save({"a": np.ones(3), "b": np.ones(2, np.int8)}, path)
    >>> [(tensor.name, tensor.dtype) for tensor in ferry.inspect(path).tensors]
    [('a', 'float64'), ('b', 'int8')]
    """
    from tensorferry._io.inspect import inspect as implementation

    return untraced(implementation)(path)
