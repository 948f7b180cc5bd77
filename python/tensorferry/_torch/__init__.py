"""Every line that knows torch. Nothing here imports torch until a call needs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tensorferry._device.driven import drives_torch
from tensorferry._dtypes import NATIVE, TORCH
from tensorferry._errors import DTypeError, MissingDependencyError
from tensorferry._native import core
from tensorferry._torch import fallback as fallback
from tensorferry._torch import memory
from tensorferry._torch import refusals as refusals

if TYPE_CHECKING:
    import torch

    from tensorferry._device.on_device import OnDevice

__all__ = [
    "TensorSource",
    "alias",
    "dtype_named",
    "exports_itself",
    "is_tensor",
    "keep_present_values",
    "keep_storage",
    "lazy_clone_is_safe",
    "outside_of_modes",
    "require",
    "take",
]


def is_tensor(x: object) -> bool:
    """Is `x` a torch tensor? False without importing anything when torch is not loaded."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(x, torch.Tensor)


def require(what: str) -> Any:
    """Import torch, which `what` needs."""
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            what, f"it needs PyTorch, which cannot be imported ({error})", "run pip install 'tensorferry[torch]'"
        ) from error
    return torch


def dtype_name(x: torch.Tensor) -> str:
    """Return the name of the tensor's dtype without the ``torch.`` in front."""
    return str(x.dtype).removeprefix("torch.")


def dtype_named(name: str) -> torch.dtype | None:
    """Return the dtype of that name, without ``torch.`` in front; None where this version of torch has none."""
    import torch

    found: torch.dtype | None = getattr(torch, name, None)
    return found


class TensorSource:
    """A torch tensor made readable: the native description, and what had to be done to get it.

    Attributes
    ----------
    source : _core.Source
        Where the values lie, in host memory.
    alias : torch.Tensor
        A detached alias of the host tensor, sharing storage and version counter with it.
    moved_from : str or None
        The device the values were copied from, or None for host tensors.
    tensor : torch.Tensor
        The tensor itself.
    copied_on_read : bool
        Its storage was copy-on-write, after ``copy="lazy"``: reading makes torch copy it to memory of its own.
    is_described : bool
        The source has no memory to read: that would have taken a copy, and only a description was asked for.
    on_device : OnDevice or None
        How the driver gets at the values, where it does and they were not asked for yet.
    """

    def __init__(
        self,
        source: core.Source,
        alias: torch.Tensor,
        tensor: torch.Tensor,
        *,
        moved_from: str | None = None,
        copied_on_read: bool = False,
        is_described: bool = False,
        on_device: OnDevice | None = None,
    ) -> None:
        self.source = source
        self.alias = alias
        self.tensor = tensor
        self.moved_from = moved_from
        self.copied_on_read = copied_on_read
        self.is_described = is_described
        self.on_device = on_device


@contextmanager
def _plain_behaviour() -> Iterator[None]:
    """Methods of subclasses behave like those of ``torch.Tensor``."""
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        yield


@contextmanager
def outside_of_modes() -> Iterator[None]:
    """Ordinary tensors give ordinary tensors, also under FakeTensorMode and inside torch.func transforms."""
    import torch

    with ExitStack() as stack:
        if torch._C._len_torch_dispatch_stack() > 0:
            from torch.utils._python_dispatch import _disable_current_modes

            stack.enter_context(_disable_current_modes())
        if torch._C._functorch.peek_interpreter_stack() is not None:
            from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

            stack.enter_context(temporarily_clear_interpreter_stack())
        yield


def _capsule_source(alias: torch.Tensor, name: str) -> core.Source:
    """Read a host tensor through a DLPack capsule; what DLPack has no word for goes as integers of the same width."""
    import torch
    from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

    reads_as = TORCH[name].reads_as
    assert reads_as is not None  # refused before
    conjugated, negated = alias.is_conj(), alias.is_neg()
    if conjugated:
        alias = alias.conj()  # flips the mark, not the values
    if not NATIVE[reads_as]["numpy_native"] or name != reads_as:
        carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[NATIVE[reads_as]["itemsize"]]
        if negated:
            alias = torch._neg_view(alias)  # flips the mark, with which a tensor cannot be reinterpreted
        alias = alias.view(carrier)
    source = core.Source.from_capsule(to_dlpack(alias))
    return source.relabelled(reads_as, conjugated=conjugated, negated=negated)


def to_plain(x: torch.Tensor) -> torch.Tensor:
    """Return `x` as exactly ``torch.Tensor``, sharing storage; refuse wrappers by name."""
    import torch

    refusals.refuse_wrapper(x)
    if type(x) is torch.Tensor or type(x) is torch.nn.Parameter:
        return x
    with _plain_behaviour():
        return x.as_subclass(torch.Tensor)


def take(x: torch.Tensor, *, move: bool = True, read: bool = True) -> TensorSource:
    """Make any tensor readable, or raise an error that names why not and what to do.

    With ``move=False`` a tensor on another device is only described: its source has no memory to read. With
    ``read=False`` neither has that of a tensor which shares its storage with a snapshot: reading would copy it.
    """
    plain = to_plain(x)
    name, reads_as = _readable(plain)
    with outside_of_modes():
        return _take_plain(plain, name, reads_as, move, read)


def alias(x: torch.Tensor) -> torch.Tensor:
    """Return another tensor over the same memory, outside of any graph; refuse the kinds that :func:`take` refuses."""
    plain = to_plain(x)
    _readable(plain)
    with outside_of_modes():
        return plain.detach()


def exports_itself(x: torch.Tensor) -> bool:
    """Does a subclass say itself how it is read, by a ``__dlpack__`` of its own?"""
    import torch

    return type(x) is not torch.nn.Parameter and type(x).__dlpack__ is not torch.Tensor.__dlpack__


def _readable(plain: torch.Tensor) -> tuple[str, str]:
    """Return the name of the dtype, and of the native one that reads it, or refuse layout or dtype."""
    name = dtype_name(plain)
    refusals.refuse_layout(plain, name)
    entry = TORCH.get(name)
    if entry is None or entry.reads_as is None:
        raise DTypeError(
            f"a torch.{name} tensor",
            entry.note if entry else "this dtype is newer than tensorferry",
            entry.remedy if entry else "convert it first, for example x.to(torch.float32)",
        )
    return name, entry.reads_as


def _take_plain(plain: torch.Tensor, name: str, reads_as: str, move: bool, read: bool) -> TensorSource:
    alias = plain.detach()
    if alias._is_zerotensor():
        return TensorSource(core.Source.zeros(reads_as, list(alias.shape)), alias, plain)
    moved_from = None if alias.device.type == "cpu" else str(alias.device)
    copied_on_read = is_copy_on_write(alias)
    memory.require_storage(alias)
    if moved_from is not None and drives_torch(alias.device.type):
        return _take_driven(plain, alias, reads_as, move)
    if (moved_from is not None and not move) or (copied_on_read and not read):
        described = memory.described(alias, reads_as)
        return TensorSource(
            described, alias, plain, moved_from=moved_from, copied_on_read=copied_on_read, is_described=True
        )
    if moved_from is not None:
        alias = fallback.to_host(alias)
    source = _capsule_source(alias, name)
    return TensorSource(source, alias, plain, moved_from=moved_from, copied_on_read=copied_on_read)


def _take_driven(plain: torch.Tensor, alias: torch.Tensor, reads_as: str, move: bool) -> TensorSource:
    """Read a tensor on a CUDA device through the driver."""
    from tensorferry._device.on_device import TorchOnDevice
    from tensorferry._device.reception import received

    on_device = TorchOnDevice(alias, reads_as)
    if move:
        return TensorSource(received(on_device), alias, plain, moved_from=on_device.name)
    described = on_device.described(host_waits=True)
    return TensorSource(described, alias, plain, moved_from=on_device.name, is_described=True, on_device=on_device)


def is_copy_on_write(x: torch.Tensor) -> bool:
    """Does `x` share its storage with a snapshot, so that reading it through DLPack would copy it?"""
    import torch

    return hasattr(torch._C, "_is_cow_tensor") and torch._C._is_cow_tensor(x)


def lazy_clone_is_safe(taken: TensorSource) -> bool:
    """Can copy-on-write storage keep the present values without pulling memory from under anyone?

    Copy-on-write moves the tensor to new memory at its next write, and frees the old memory with the snapshot. So
    nobody else may hold a view of that memory: no array of ours (they hold the storage object), none of ``.numpy()``
    (which makes the storage fixed in size), no other process, no DLPack consumer (it holds the tensor, or a view of
    it). Views of torch's own and autograd look like such consumers, and cost a private copy.
    """
    import torch

    alias = taken.alias
    if (
        taken.moved_from is not None
        or not hasattr(torch, "_lazy_clone")
        or alias.device.type != "cpu"
        or alias._is_zerotensor()
    ):
        return False
    if alias.is_conj() or alias.is_neg() or alias.untyped_storage().is_shared():
        return False
    with outside_of_modes():
        return alias.untyped_storage().resizable() and _holders(taken.tensor, alias) == _sole_holders()


def keep_storage(taken: TensorSource, source: core.Source) -> core.Source:
    """Return `source` kept alive by the tensor's storage, remembering an alias of the tensor for ``from_numpy``."""
    return source.owned_by(core.view_base(taken.alias.untyped_storage(), taken.alias))


def keep_present_values(taken: TensorSource, source: core.Source) -> core.Source:
    """Return `source` kept alive by a copy-on-write clone: later writes to the tensor go to new memory."""
    import torch

    with outside_of_modes():
        snapshot = torch._lazy_clone(taken.alias)
    core.note_lazy_snapshot()
    # Held by its storage alone: an alias of the snapshot could be written to, and would take the memory along.
    return source.owned_by(snapshot.untyped_storage())


def _holders(tensor: torch.Tensor, alias: torch.Tensor) -> tuple[int, int, int] | None:
    """Count who knows the tensor, its storage, and the storage's Python object; a DLPack consumer holds the first."""
    import torch

    if not hasattr(tensor, "_use_count") or not hasattr(torch._C, "_storage_Use_Count"):
        return None
    storage = alias.untyped_storage()
    return tensor._use_count(), torch._C._storage_Use_Count(storage._cdata), sys.getrefcount(storage)


def _sole_holders() -> tuple[int, int, int]:
    """What :func:`_holders` says of a tensor that nobody else knows."""
    import torch

    tensor = torch.empty(1, device="cpu")
    return _holders(tensor, tensor.detach()) or (0, 0, 0)
