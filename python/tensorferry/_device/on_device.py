"""What lies in the memory of a CUDA device: its description on arrival, and how to hand it to the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorferry._device.streams import LEGACY, number_of, torch_stream, working_in
from tensorferry._device.torch_memory import introduce_torch
from tensorferry._dtypes import NATIVE
from tensorferry._native import core

if TYPE_CHECKING:
    import torch

__all__ = ["OnDevice", "ProducerOnDevice", "TorchOnDevice", "stream_of_interface"]


class OnDevice(ABC):
    """A tensor on a CUDA device that the driver can copy from.

    Attributes
    ----------
    packs : bool
        Its producer packs it on the device first; known once it was described.
    nbytes : int
        What it takes in host memory; known once it was described.
    must_wait : bool
        Its later work is not ordered after a copy of ours, so that the call has to wait for the copy.
    address : int
        Of its first element on the device, for descriptions; 0 where that was not asked.
    read_only : bool
        Its producer says that nobody may write to it.
    arrival : core.Arrival
        How it comes to lie in host memory; known once it was described.
    """

    packs = False
    nbytes = 0
    must_wait = False
    address = 0
    read_only = False

    arrival: core.Arrival

    def __init__(self, source: core.Source, *, producer_packs: bool) -> None:
        self._source = source
        self._producer_packs = producer_packs
        self._kernels: bool | None = None  # once they were loaded, or were not to be had
        self._cast_to, self._in_order = "", "K"

    @property
    @abstractmethod
    def device(self) -> int:
        """Ordinal."""

    @property
    def name(self) -> str:
        """Such as ``cuda:0``."""
        return f"cuda:{self.device}"

    def described(self, *, host_waits: bool) -> core.Source:
        """Describe how it will lie in host memory; there is nothing to read yet."""
        source = self._source
        self.arrival = core.arrival(
            source,
            producer_packs=self._producer_packs,
            host_waits=host_waits,
            kernels=self.has_kernels,
            order=self._in_order,
            dtype=self._cast_to,
        )
        self.packs, self.nbytes = self.arrival.packs, self.arrival.nbytes
        dtype = self.arrival.dtype
        landed = core.Source.described(dtype, list(source.shape), list(self.arrival.strides))
        return landed.relabelled(dtype, conjugated=source.conjugated, negated=source.negated)

    def load_kernels(self) -> None:
        """Have our kernels ready, or know that there are none, before a copy is decided on; initialises the driver."""
        if self._kernels is None:
            self._kernels = core.kernels_there(self.device, load=True)

    @property
    def has_kernels(self) -> bool:
        """Are our kernels there, or to be expected?"""
        return core.kernels_there(self._known_device, load=False) if self._kernels is None else self._kernels

    @property
    def _known_device(self) -> int:
        """Ordinal, without asking a driver that nobody uses."""
        return self.device

    def can_cast(self, dtype: str) -> bool:
        """Can a kernel cast to it before the link, so that fewer bytes go over it, or no more?"""
        source = self._source
        unit = core.cast_alignment(source.dtype)
        return (
            int(NATIVE[dtype]["itemsize"]) <= int(NATIVE[source.dtype]["itemsize"])
            and core.kernels_cast(source.dtype, dtype)
            and all(step % unit == 0 for step in (*source.strides, self.address))
            and self.has_kernels
        )

    def described_as(self, dtype: str, order: str) -> core.Source:
        """Describe how it will lie when a kernel casts and orders it, as far as one is there that can."""
        self._cast_to, self._in_order = dtype, order
        return self.described(host_waits=True)

    @property
    def lying(self) -> core.Source:
        """How it lies on the device; there is nothing to read."""
        return self._source

    @property
    def is_dense(self) -> bool:
        """Do its elements fill one block, in some order of the axes?"""
        return bool(self._source.layout_facts()["dense"])

    @property
    def may_be_gathered(self) -> bool:
        """Is it so small, and a block, that it goes together with others of its call?"""
        return self.arrival.kernels and self.arrival.is_run and 0 < self.nbytes <= core.most_gathered_nbytes

    def way(self, destination: core.Source | None, *, ring: bool, snapshot: str) -> tuple[str, int]:
        """Return the way over the link, and how many kernels are launched for it, as it was described last."""
        return self.arrival.way(self.lying, destination, ring=ring, device=self._known_device, snapshot=snapshot)

    @abstractmethod
    def handed_over(self, stream: Any) -> core.DeviceSource:
        """Return what the driver copies from: packed if it has to be, its values ordered in `stream` or its own."""

    @abstractmethod
    def as_it_is(self, stream: int) -> core.DeviceSource:
        """Return what the driver copies from, unpacked; the caller says that its values are ordered in `stream`."""

    @property
    def asks_for_stream(self) -> Callable[[], int | None] | None:
        """Gives the stream that its library works in at the moment; None where no library tells. Keeps no tensor."""
        return None

    def current_stream(self) -> int | None:
        """Return DLPack's number of the stream that its library works in; None where that is not known."""
        ask = self.asks_for_stream
        return None if ask is None else ask()


class TorchOnDevice(OnDevice):
    """A torch tensor: `alias` is a detached one, `reads_as` the native dtype of its memory."""

    def __init__(self, alias: torch.Tensor, reads_as: str) -> None:
        self._device = alias.get_device()
        self._bare, self._reads_as = _without_marks(alias, reads_as), reads_as
        strides = [step * alias.element_size() for step in alias.stride()]
        source = core.Source.described(reads_as, list(alias.shape), strides)
        source = source.relabelled(reads_as, conjugated=alias.is_conj(), negated=alias.is_neg())
        super().__init__(source, producer_packs=True)

    @property
    def device(self) -> int:
        """Ordinal."""
        return self._device

    def handed_over(self, stream: Any) -> core.DeviceSource:
        """Pack with torch on its current stream where that has to be done."""
        from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

        introduce_torch(self.device)
        bare = self._packed(stream) if self.packs else self._bare
        number = torch_stream(self.device) if stream is None else number_of(stream)
        source = core.DeviceSource.from_capsule(to_dlpack(bare), number)
        return source.as_snapshot() if self.packs else source

    def as_it_is(self, stream: int) -> core.DeviceSource:
        """Hand over the memory without marks."""
        from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

        return core.DeviceSource.from_capsule(to_dlpack(self._bare), stream)

    @property
    def asks_for_stream(self) -> Callable[[], int | None]:
        """Torch's current stream."""
        return partial(torch_stream, self.device)

    def _packed(self, stream: Any) -> torch.Tensor:
        import torch

        if stream is not None and number_of(stream) != torch_stream(self.device):
            with working_in(stream, self.device):
                return self._packed(None)
        once = self._bare
        for axis, step in enumerate(once.stride()):
            if step == 0 and once.shape[axis] > 1:
                once = once.narrow(axis, 0, 1)
        steps = once.stride()
        order = sorted(range(once.dim()), key=lambda axis: -steps[axis])
        packed = torch.empty([once.shape[axis] for axis in order], dtype=once.dtype, device=once.device)
        back = sorted(range(once.dim()), key=order.__getitem__)
        packed = packed.permute(back)
        packed.copy_(once)
        return packed.expand(self._bare.shape)


def _without_marks(alias: torch.Tensor, reads_as: str) -> torch.Tensor:
    """Return the memory without conjugate and negative marks, of a dtype that DLPack has a word for."""
    import torch

    if alias.is_conj():
        alias = alias.conj()
    if alias.is_neg():
        alias = torch._neg_view(alias)
    carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(alias.element_size())
    plain = NATIVE[reads_as]["numpy_native"] and reads_as != "bool" and str(alias.dtype) == f"torch.{reads_as}"
    return alias if plain or carrier is None else alias.view(carrier)


class ProducerOnDevice(OnDevice):
    """A DLPack producer of another library, through its exchange table or its method."""

    def __init__(self, producer: Any, *, through_table: bool) -> None:
        self._producer, self._through_table = producer, through_table
        unordered = self._source_in(LEGACY, ordered=False)
        self._device = unordered.device
        self._stream = core.work_stream_of(type(producer), self._device) if through_table else None
        self.must_wait = self._stream is None
        self.address, self.read_only = unordered.address, unordered.read_only
        super().__init__(
            core.Source.described(unordered.dtype, list(unordered.shape), list(unordered.strides)), producer_packs=False
        )

    @property
    def device(self) -> int:
        """Ordinal."""
        return self._device

    def handed_over(self, stream: Any) -> core.DeviceSource:
        """Ask the producer's table for its stream, or the producer to order its work before one of ours."""
        if stream is not None:
            return self._source_in(number_of(stream), ordered=True)
        if self._stream is not None:
            current = core.work_stream_of(type(self._producer), self.device)
            return self._source_in(self._stream if current is None else current, ordered=False)
        return self._source_in(core.ordering_stream(self.device), ordered=True)

    def as_it_is(self, stream: int) -> core.DeviceSource:
        """Ask the producer for no order."""
        return self._source_in(stream, ordered=False)

    @property
    def asks_for_stream(self) -> Callable[[], int | None] | None:
        """As the table says, if it does."""
        return None if self._stream is None else partial(core.work_stream_of, type(self._producer), self.device)

    def current_stream(self) -> int | None:
        """As the table says, else as an array interface that is there, too."""
        return super().current_stream() if self._stream is not None else stream_of_interface(self._producer)

    def _source_in(self, stream: int, *, ordered: bool) -> core.DeviceSource:
        if self._through_table:
            return core.DeviceSource.from_exchange(self._producer, stream)
        return core.DeviceSource.from_capsule(_capsule(self._producer, stream if ordered else -1), stream)


def _capsule(producer: Any, stream: int) -> Any:
    try:
        return producer.__dlpack__(stream=stream, max_version=(1, 1))
    except TypeError:
        return producer.__dlpack__(stream=stream)  # older producers know fewer arguments


def stream_of_interface(array: Any) -> int | None:
    facts = getattr(array, "__cuda_array_interface__", None) or {}
    named = facts.get("stream")
    return None if named is None else number_of(named)
