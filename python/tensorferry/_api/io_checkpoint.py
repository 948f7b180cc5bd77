"""Public names for sharded checkpoints and activations; each loads its implementation when first used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["CheckpointStager", "CheckpointWriter"]

_Path = str | os.PathLike[str]


class CheckpointStager:
    """Stages sharded state for ``torch.distributed.checkpoint.async_save``, with any of its writers.

    Tensors on CUDA devices are enqueued as one batch into pinned memory, behind snapshots where memory allows, and the
    training goes on at once. Tensors in host memory are copied at once. Only what a view shows is copied, never its
    whole storage; a tensor that appears twice is copied once. ``DTensor`` stays ``DTensor``: its local part is staged,
    without communication.

    Notes
    -----
    Every staged state has memory of its own, from pools that get it back when the state is dropped; so a later staging
    never changes what is still being written. Two states in flight take twice the memory.

    Examples
    --------
    >>> import tempfile, torch
    >>> import torch.distributed.checkpoint as dcp
    >>> import tensorferry as ferry
    >>> state = {"w": torch.ones(3)}
    >>> stager = ferry.io.CheckpointStager()
    >>> staged = stager.stage(state)
    >>> _ = state["w"].zero_()
    >>> staged["w"]
    tensor([1., 1., 1.])
    """

    def __init__(self) -> None:
        self._last: Any = None

    def stage(self, state_dict: Mapping[str, Any], **_: Any) -> dict[str, Any] | Future[dict[str, Any]]:
        """Copy a state dict to host memory.

        Parameters
        ----------
        state_dict : mapping
            Nests of dicts, lists and tuples of tensors and other values.

        Returns
        -------
        dict, or Future of dict
            A future where tensors are on devices. Their values are those of now: later work on the current streams does
            not change them.

        Raises
        ------
        LayoutError, DTypeError
            Names the tensor.
        """
        from tensorferry._io.checkpoint_stager import stage

        self._last = untraced(stage)(state_dict)
        staged: dict[str, Any] | Future[dict[str, Any]] = self._last
        return staged

    @property
    def should_synchronize_after_execute(self) -> bool:
        """False: nothing needs to wait before the training goes on."""
        return False

    def synchronize_staging(self) -> None:
        """Wait until what was staged last is in host memory."""
        if hasattr(self._last, "result"):
            self._last.result()

    def close(self) -> None:
        """Let go of what was staged last."""
        self._last = None


class CheckpointWriter:
    """A storage writer for ``torch.distributed.checkpoint``: a folder of .safetensors files, whole or absent.

    Every process writes its parts into one file, from where they lie. The folder appears under its name when all have
    succeeded. torch's own ``HuggingFaceStorageReader`` reads it, and reshards; where tensors are whole, an index makes
    it readable by Hugging Face's libraries as well.

    Parameters
    ----------
    path : path
        The folder, on a file system that all processes see. ``checkpoint_id`` of a save replaces it.
    durable : bool
        Return when files and names are on the disk.
    overwrite : bool
        May a checkpoint of this kind at the path be replaced, in one step?
    checksum : {"crc32c"}, optional
        As for :func:`tensorferry.save`.
    metadata : mapping of str to str, optional
        Stored in every file.
    max_staging_bytes : int or str
        As for :func:`tensorferry.save`, in each process.

    Raises
    ------
    ArgumentError
        For wrong arguments.

    Notes
    -----
    Tensors only: other values would have to be pickled, and are refused with ``ExportError``. Errors of a save are
    raised by ``save`` in all processes, inside torch's ``CheckpointException``; nothing new is at the path then, and
    what was written is removed by the next save with the same writer, by ``close``, or by the next process that saves
    there.

    Examples
    --------
    >>> import tempfile, torch
    >>> import torch.distributed.checkpoint as dcp
    >>> import tensorferry as ferry
    >>> path = f"{tempfile.mkdtemp()}/step-100"
    >>> _ = dcp.save({"w": torch.arange(3.0)}, storage_writer=ferry.io.CheckpointWriter(path), no_dist=True)
    >>> state = {"w": torch.zeros(3)}
    >>> dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(path), no_dist=True)
    >>> state["w"]
    tensor([0., 1., 2.])
    """

    def __init__(
        self,
        path: _Path,
        /,
        *,
        durable: bool = True,
        overwrite: bool = False,
        checksum: Literal["crc32c"] | None = None,
        metadata: Mapping[str, str] | None = None,
        max_staging_bytes: int | str = 64 << 20,
    ) -> None:
        from tensorferry._io.checkpoint_writer import Shards
        from tensorferry._io.options import SaveOptions

        options = SaveOptions.parse(
            durable=durable,
            overwrite=overwrite,
            checksum=checksum,
            metadata=metadata,
            max_staging_bytes=max_staging_bytes,
        )
        self._shards = Shards(path, options)

    def reset(self, checkpoint_id: _Path | None = None) -> None:
        """Called by torch before a save; see :class:`torch.distributed.checkpoint.StorageWriter`."""
        self._shards.restart(checkpoint_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Called by torch; nothing is to be done."""

    def prepare_local_plan(self, plan: Any) -> Any:
        """Called by torch in every process; the plan stays as it is."""
        return plan

    def prepare_global_plan(self, plans: Sequence[Any]) -> list[Any]:
        """Called by torch in one process: makes the folder, under a temporary name."""
        return self._shards.planned(plans)

    def write_data(self, plan: Any, planner: Any) -> Any:
        """Called by torch in every process: writes its part and waits for that."""
        from tensorferry._io.checkpoint_writer import finished

        return finished(untraced(self._shards.write)(plan, planner))

    def finish(self, metadata: Any, results: Sequence[Sequence[Any]]) -> None:
        """Called by torch in one process, when all have written: the folder appears."""
        self._shards.finish(metadata, results)

    def storage_meta(self) -> None:
        """Called by torch; there is nothing to add to its metadata."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _Path) -> bool:
        """Is it a path?"""
        return isinstance(checkpoint_id, (str, os.PathLike)) and "://" not in str(checkpoint_id)

    def close(self) -> None:
        """Remove what a save that failed has left. Never raises."""
        self._shards.close()

    def __del__(self) -> None:
        """Like :meth:`close`."""
        shards = getattr(self, "_shards", None)
        if shards is not None:
            shards.close()
