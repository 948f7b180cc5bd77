"""Values of tensors on devices: sent at once, or added up there until their window ends."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry._metrics.arguments import not_captured
from tensorferry._metrics.combining import Aggregations
from tensorferry._metrics.device_totals import DeviceTotals
from tensorferry._metrics.device_values import check, send
from tensorferry._metrics.names import element_names
from tensorferry._metrics.on_the_way import AwaitedTransfer, OnTheWay
from tensorferry._transfer.transfer import Transfer

if TYPE_CHECKING:
    import torch

__all__ = ["Leaving"]


class Leaving:
    """The devices' side of one log. Not for two threads at once.

    Parameters
    ----------
    aggregations : Aggregations
        Values that are not aggregated are sent with the call.
    """

    def __init__(self, aggregations: Aggregations) -> None:
        self._aggregations = aggregations
        self._totals = DeviceTotals(aggregations)

    def check(self, on_devices: dict[str, torch.Tensor]) -> None:
        """Raise where values cannot leave, before anything changes."""
        check(on_devices)

    def leave(self, on_devices: dict[str, torch.Tensor], elsewhere: dict[str, Any]) -> list[OnTheWay]:
        """Take the values that tensors have now; returns those that come by themselves."""
        parts = [_sent_elsewhere(elsewhere)] if elsewhere else []
        if not self._aggregations.keeps_last:
            kinds = {name: self._aggregations.of(name) for name in on_devices}
            self._totals.add({name: x for name, x in on_devices.items() if kinds[name] != "last"})
            on_devices = {name: x for name, x in on_devices.items() if kinds[name] == "last"}
        if on_devices:
            parts.extend(send(on_devices))
        return parts

    def leave_now(self, tensors: dict[str, torch.Tensor]) -> list[OnTheWay]:
        """Send tensors of any size as they are, from one device."""
        return send(tensors)

    def leave_totals(self) -> list[tuple[OnTheWay, int]]:
        """Send what was added up since the last time, and begin anew; each with the number of its values."""
        return self._totals.send()


def _sent_elsewhere(values: dict[str, Any]) -> OnTheWay:
    """Send what other libraries have, all by one call."""
    from tensorferry._convert.to_numpy_async import to_numpy_async

    transfer = to_numpy_async(list(values.values()), dtype="numpy")
    if not isinstance(transfer, Transfer):
        raise not_captured(next(iter(values)))
    names = [one for name, value in values.items() for one in element_names(name, tuple(getattr(value, "shape", ())))]
    return OnTheWay(names, AwaitedTransfer(transfer), partial(_numbers, transfer))


def _numbers(transfer: Any) -> list[Any]:
    return [number for array in transfer.result() for number in np.asarray(array).reshape(-1).tolist()]
