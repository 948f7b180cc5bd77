"""What lies in the memory of a CUDA device: its description on arrival, and how to hand it to the driver."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorferry._device.streams import LEGACY, number_of, torch_stream, working_in
from tensorferry._device.torch_memory import introduce_torch
from tensorferry._dtypes import NATIVE
from tensorferry._errors import DTypeError
from tensorferry._native import core

if TYPE_CHECKING:
    import torch

__all__ = ["ArrayOnDevice", "OnDevice", "ProducerOnDevice", "TorchOnDevice"]


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
    """

    packs = False
    nbytes = 0
    must_wait = False
    address = 0
    read_only = False

    def __init__(self, source: core.Source, *, producer_packs: bool) -> None:
        self._source = source
        self._producer_packs = producer_packs

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
        facts = core.arrival(self._source, producer_packs=self._producer_packs, host_waits=host_waits)
        self.packs, self.nbytes = facts["packs"], facts["nbytes"]
        source = self._source
        landed = core.Source.described(source.dtype, list(source.shape), list(facts["strides"]))
        return landed.relabelled(source.dtype, conjugated=source.conjugated, negated=source.negated)

    @property
    def lying(self) -> core.Source:
        """How it lies on the device; there is nothing to read."""
        return self._source

    @property
    def is_dense(self) -> bool:
        """Do its elements fill one block, in some order of the axes?"""
        return bool(self._source.layout_facts()["dense"])

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
        return super().current_stream() if self._stream is not None else _stream_of_interface(self._producer)

    def _source_in(self, stream: int, *, ordered: bool) -> core.DeviceSource:
        if self._through_table:
            return core.DeviceSource.from_exchange(self._producer, stream)
        return core.DeviceSource.from_capsule(_capsule(self._producer, stream if ordered else -1), stream)


def _capsule(producer: Any, stream: int) -> Any:
    try:
        return producer.__dlpack__(stream=stream, max_version=(1, 1))
    except TypeError:
        return producer.__dlpack__(stream=stream)  # older producers know fewer arguments


class ArrayOnDevice(OnDevice):
    """What only has ``__cuda_array_interface__``."""

    def __init__(self, array: Any) -> None:
        self._array = array
        facts = array.__cuda_array_interface__
        self._dtype, self._shape, self._strides = _layout_of(array, facts)
        self.address, self.read_only = int(facts["data"][0] or 0), bool(facts["data"][1])
        self.must_wait = True
        source = core.Source.described(self._dtype, list(self._shape), list(self._strides))
        super().__init__(source, producer_packs=False)

    @property
    def device(self) -> int:
        """Ordinal, asked of the driver: the interface does not tell."""
        return 0 if math.prod(self._shape) == 0 else core.device_of_address(self.address)

    @property
    def name(self) -> str:
        """Of the kind of device only, for descriptions ask no driver."""
        return "cuda"

    def handed_over(self, stream: Any) -> core.DeviceSource:
        """Order the copy in the stream that the interface names; without one the values are there already."""
        named = self._array.__cuda_array_interface__.get("stream")
        return self.as_it_is(number_of(stream) if stream is not None else LEGACY if named is None else number_of(named))

    def current_stream(self) -> int | None:
        """As the interface says."""
        return _stream_of_interface(self._array)

    def as_it_is(self, stream: int) -> core.DeviceSource:
        """Hand over the memory."""
        return core.DeviceSource.over(
            self.address, self._dtype, list(self._shape), list(self._strides), self.device, stream, self._array
        )


def _stream_of_interface(array: Any) -> int | None:
    facts = getattr(array, "__cuda_array_interface__", None) or {}
    named = facts.get("stream")
    return None if named is None else number_of(named)


def _layout_of(array: Any, facts: dict[str, Any]) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    import numpy as np

    given = f"a {type(array).__name__} with __cuda_array_interface__"
    if facts.get("mask") is not None:
        raise DTypeError(given, "a copy would drop its mask", "fill it in its own library first")
    dtype = np.dtype(facts["typestr"])
    if dtype.hasobject or dtype.names is not None or not dtype.isnative:
        raise DTypeError(given, f"its dtype {dtype} has no counterpart", "convert it in its own library first")
    shape = tuple(int(extent) for extent in facts["shape"])
    strides = facts.get("strides")
    if strides is None:
        strides, step = [], dtype.itemsize
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= max(extent, 1)
    try:
        name = core.Source.from_array(np.empty(0, dtype)).dtype
    except DTypeError as error:
        raise DTypeError(given, f"its dtype {dtype} has no counterpart", error.instead) from error
    return name, shape, tuple(int(step) for step in strides)
