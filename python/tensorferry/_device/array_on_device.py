"""Arrays of other libraries on CUDA devices that only have ``__cuda_array_interface__``."""

from __future__ import annotations

import math
from typing import Any

from tensorferry._device.on_device import OnDevice, stream_of_interface
from tensorferry._device.streams import LEGACY, number_of
from tensorferry._errors import DTypeError
from tensorferry._native import core

__all__ = ["ArrayOnDevice"]


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

    @property
    def _known_device(self) -> int:
        return 0 if core.pinned_stats() is None else self.device

    def handed_over(self, stream: Any) -> core.DeviceSource:
        """Order the copy in the stream that the interface names; without one the values are there already."""
        named = self._array.__cuda_array_interface__.get("stream")
        return self.as_it_is(number_of(stream) if stream is not None else LEGACY if named is None else number_of(named))

    def current_stream(self) -> int | None:
        """As the interface says."""
        return stream_of_interface(self._array)

    def as_it_is(self, stream: int) -> core.DeviceSource:
        """Hand over the memory."""
        return core.DeviceSource.over(
            self.address, self._dtype, list(self._shape), list(self._strides), self.device, stream, self._array
        )


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
