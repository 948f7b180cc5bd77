"""Public names for files that are written in the background; each loads its implementation when first called."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    from tensorferry.types import SaveHandle, SaveReport

__all__ = ["Writer", "save_async"]

_Path = str | os.PathLike[str]


def save_async(
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
) -> SaveHandle:
    """Write tensors to a file or folder in the background: whole, or nothing appears at the path.

    Parameters
    ----------
    tree : tensor, nest, or iterable of (str, tensor)
        As for :func:`save`. They must not change before ``handle.staged`` is done. An iterator is consumed by another
        thread, one item at a time.
    path, format, dtype, durable, overwrite, checksum, metadata, max_shard_size
        As for :func:`save`.
    progress : callable, optional
        As for :func:`save`, called in another thread.
    max_staging_bytes : int or str
        Bytes of memory that values wait in until they are written. A tree that fits is staged at once; of a larger one
        the rest is staged as the first tensors are written.

    Returns
    -------
    SaveHandle
        ``handle.staged`` and ``handle.written`` are futures; ``handle.result()`` waits for the file.

    Raises
    ------
    ArgumentError, DTypeError, LayoutError
        For arguments and tensors that are wrong from the start. All other errors are those of ``handle.result()``; one
        that nobody asks for becomes a ``FerryWarning``.

    Notes
    -----
    Tensors of torch on a device are read in the order of the streams that are current in this thread; work that is
    enqueued on these before ``handle.staged`` is done may come before that. Blocks until everything is staged where
    other producers have tensors on a CUDA device, whose streams belong to the calling thread. At the end of the
    interpreter saves that go on get 60 seconds together.

    Examples
    --------
    >>> import tempfile, torch, tensorferry as ferry
    >>> weights = {"w": torch.ones(3)}
    >>> handle = ferry.save_async(weights, f"{tempfile.mkdtemp()}/w.safetensors")
    >>> handle.staged.result()
    >>> _ = weights["w"].zero_()
    >>> ferry.load(handle.result().path)["w"].tolist()
    [1.0, 1.0, 1.0]
    """
    from tensorferry._io.save_async import save_async as implementation

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


class Writer:
    """Writes tensors one by one, or an array row by row, while the caller goes on.

    A tensor may change as soon as ``put`` or ``append`` returns: its values are in memory of ours, or their copy is
    enqueued on its device. That memory is bounded; a caller that is faster than the disk waits.

    Parameters
    ----------
    path : path
        Its end says the format, as for :func:`save`.
    format : str, optional
        The format, where the end of the path does not say it.
    mode : {"create", "append"}
        With "append" rows are added behind those that are there, if anything is.
    dtype : dtype, str or mapping, optional
        Convert on the way, as :func:`to_numpy` does: floating and complex tensors only.
    durable : bool
        Return from ``flush`` and ``close`` when everything is on the disk.
    overwrite : bool
        May something at the path be replaced? That happens in one step, by ``close``.
    checksum : {"crc32c"}, optional
        As for :func:`save`. With ``mode="append"`` rows that are there are read once, to sum them again.
    metadata : mapping of str to str, optional
        Stored beside the tensors.
    max_shard_size : int or str, optional
        As for :func:`save`.
    max_staging_bytes : int or str
        Bytes of memory for values on their way.

    Raises
    ------
    ExportError
        When something is at the path that may not be replaced, or cannot be continued; when another writer has it.
    ArgumentError
        For wrong arguments.

    Notes
    -----
    Tensors that are put appear together, when ``close`` returns. Rows appear as they are written, where nothing was at
    the path before: a ``.npy`` file, and the files of a folder, can be read at any time, and always count whole rows
    only. So a process that is killed loses what was on its way; ``mode="append"`` goes on behind the last whole batch,
    and ``rows`` tells how many rows are there. Two writers never append to the same file.

    As a context manager it is closed at the end, or given up on an exception: then everything it made is removed. With
    ``mode="append"`` whole rows stay.

    Any thread may call it; one tensor is staged at a time. An error of the disk is raised by the next call. A writer
    that is dropped without ``close`` keeps whole rows that have appeared, removes everything else, and warns; so does
    the end of the interpreter, after 60 seconds at most. A forked child cannot use it.

    Examples
    --------
    >>> import tempfile, numpy as np, torch, tensorferry as ferry
    >>> path = f"{tempfile.mkdtemp()}/embeddings.npy"
    >>> with ferry.Writer(path) as writer:
    ...     for _ in range(3):
    ...         writer.append(torch.zeros(4, 8))
    >>> with ferry.Writer(path, mode="append") as writer:
    ...     writer.rows
    ...     writer.append(torch.ones(1, 8))
    12
    >>> np.load(path).shape
    (13, 8)
    """

    def __init__(
        self,
        path: _Path,
        /,
        *,
        format: str | None = None,
        mode: Literal["create", "append"] = "create",
        dtype: Any = None,
        durable: bool = False,
        overwrite: bool = False,
        checksum: Literal["crc32c"] | None = None,
        metadata: Mapping[str, str] | None = None,
        max_shard_size: int | str | None = None,
        max_staging_bytes: int | str = 64 << 20,
    ) -> None:
        import weakref

        from tensorferry._io.options import SaveOptions
        from tensorferry._io.writer import WriterThread

        options = SaveOptions.parse(
            durable=durable,
            overwrite=overwrite,
            checksum=checksum,
            metadata=metadata,
            max_shard_size=max_shard_size,
            max_staging_bytes=max_staging_bytes,
        )
        self._thread = WriterThread(path, format, mode, dtype, options)
        weakref.finalize(self, self._thread.when_dropped).atexit = False

    @property
    def path(self) -> str:
        """Where it writes; absolute."""
        return self._thread.path

    @property
    def rows(self) -> int:
        """How many rows there are, found and given; of several arrays, of the shortest."""
        return min((kind.rows for kind in self._thread.rows.kinds.values()), default=0)

    def rows_of(self, name: str) -> int:
        """Return how many rows one of several growing arrays has; 0 for one that is not there."""
        kind = self._thread.rows.kinds.get(name)
        return 0 if kind is None else kind.rows

    def put(self, name: str, tensor: Any, /) -> None:
        """Write one tensor; it may change when this returns.

        Parameters
        ----------
        name : str
            Its name; each once.
        tensor : tensor, array, DLPack producer or number
            Of any device, layout and dtype.

        Raises
        ------
        ArgumentError, DTypeError, LayoutError
            For what cannot be written; the writer goes on without it.
        ExportError
            What the disk or the format refused before; the writer is at its end.

        Notes
        -----
        Waits while ``max_staging_bytes`` are on their way. Never waits for a device, unless :func:`to_numpy_async`
        would.
        """
        untraced(self._thread.put)(name, tensor)

    def append(self, batch: Any, /, *, name: str | None = None) -> None:
        """Append rows to an array; the batch may change when this returns.

        Parameters
        ----------
        batch : tensor, or mapping of str to tensor
            Rows along the first axis. A mapping has rows for several arrays, equally many for each.
        name : str, optional
            The array that they belong to, in a folder, ``.zarr``, ``.parquet`` or ``.arrow``; "rows" without it. The
            array of a ``.npy`` file has no name.

        Raises
        ------
        LayoutError, DTypeError
            For rows that differ in shape or dtype from those before; the writer goes on without them.
        ExportError
            As for :meth:`put`, and for formats whose arrays cannot grow.

        Notes
        -----
        Waits as :meth:`put` does.
        """
        untraced(self._thread.append)(batch, name)

    def flush(self) -> None:
        """Wait until everything that was given is written, and can be read where rows appear before the end.

        Raises
        ------
        ExportError
            What the disk or the format refused.
        """
        self._thread.flush()

    def close(self) -> SaveReport:
        """Finish the file and wait for it; again, return the same report.

        Raises
        ------
        ExportError
            What the disk or the format refused; what was made is removed then.
        """
        return self._thread.close()

    def abort(self) -> None:
        """Give up and remove everything that this writer made; with ``mode="append"`` whole rows stay. Never raises."""
        self._thread.abort()

    def __enter__(self) -> Writer:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it, or give it up on an exception."""
        if kind is None:
            self.close()
        else:
            self.abort()

    def __repr__(self) -> str:
        return f"<Writer of {self.path!r}>"
