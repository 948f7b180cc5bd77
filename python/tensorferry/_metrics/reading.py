"""The values of one call: numbers that are on the host are read at once, the rest is told apart by its device."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorferry._convert.to_python import to_python
from tensorferry._errors import DTypeError, FerryError, LayoutError
from tensorferry._metrics.names import element_names, flatten, same_name
from tensorferry._native import core
from tensorferry._nest import open_node

if TYPE_CHECKING:
    import torch

__all__ = ["MOST_ELEMENTS", "Reading", "read"]

# What is larger is no handful of metrics; in one step a thousand of them are still one copy of some kilobytes.
MOST_ELEMENTS = 1024


@dataclass
class Reading:
    """The values of one call.

    Attributes
    ----------
    values : dict of str to number
        All names in their order; those on devices are None for the moment.
    on_devices : dict of str to torch.Tensor
        Tensors that torch has on devices, by the name of the metric.
    elsewhere : dict of str to Any
        What other libraries have on devices.
    """

    values: dict[str, Any]
    on_devices: dict[str, torch.Tensor] = field(default_factory=dict)
    elsewhere: dict[str, Any] = field(default_factory=dict)


def read(metrics: Any, spares: list[dict[str, Any]]) -> Reading:
    """Read what is on the host, now.

    Parameters
    ----------
    metrics : dict or other nest
        As for ``MetricLog.log``.
    spares : list of dict
        Values of earlier steps. One that nobody else holds may be filled again, and is taken from the list.

    Raises
    ------
    FerryError
        Naming the metric that is no number and no small tensor of numbers.
    """
    others: list[Any] = []
    if type(metrics) is dict:
        values = core.read_metrics(metrics, others, spares)
        if not others:
            return Reading(values)
        if not all(type(key) is str and not _is_nest(values[key]) for key in others):
            others = []
            values = core.read_metrics(flatten(metrics), others, spares)
    else:
        values = core.read_metrics(flatten(metrics), others, spares)
    reading = Reading(values)
    expanded: dict[str, list[Any]] = {}
    for name in others:
        _read_other(name, values[name], reading, expanded)
    if expanded:
        reading.values = _with_elements(values, expanded)
    return reading


def _is_nest(value: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return False
    return open_node(value) is not None


def _read_other(name: str, value: Any, reading: Reading, expanded: dict[str, list[Any]]) -> None:
    try:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            _refuse_large(tuple(value.shape))
            if value.device.type not in ("cpu", "meta"):
                _refuse_complex(value)
                reading.values[name] = None
                reading.on_devices[name] = value
                if value.numel() != 1:
                    expanded[name] = [(known, None) for known in element_names(name, tuple(value.shape))]
                return
        elif _is_on_device(value):
            reading.values[name] = None
            reading.elsewhere[name] = value
            shape = tuple(getattr(value, "shape", ()))
            _refuse_large(shape)
            if any(extent != 1 for extent in shape):
                expanded[name] = [(known, None) for known in element_names(name, shape)]
            return
        else:
            _refuse_large(tuple(getattr(value, "shape", ())))
        _read_host(name, value, reading, expanded)
    except FerryError as error:
        error.given = f"metric {name!r}: {error.given}"
        raise


def _read_host(name: str, value: Any, reading: Reading, expanded: dict[str, list[Any]]) -> None:
    shape = tuple(getattr(value, "shape", ()))
    numbers = _leaves(to_python(value))
    if len(numbers) == 1 and all(extent == 1 for extent in shape):
        reading.values[name] = numbers[0]
    else:
        expanded[name] = list(zip(element_names(name, shape), numbers, strict=True))


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [number for child in value for number in _leaves(child)]
    if isinstance(value, (bool, int, float)):
        return [value]
    if isinstance(value, (str, bytes, type(None), complex)) or not hasattr(value, "__float__"):
        raise DTypeError(
            f"a value of type {type(value).__name__}",
            "a metric is a real number, or a small tensor of them",
            "log its real and imaginary part, or its absolute value"
            if isinstance(value, complex)
            else "leave it out, or convert it to a number first",
        )
    return [float(value)]


def _refuse_complex(tensor: torch.Tensor) -> None:
    if tensor.is_complex():
        raise DTypeError(
            f"a tensor of {tensor.dtype}",
            "a metric is a real number, or a small tensor of them",
            "log its real and imaginary part, or its absolute value",
        )


def _refuse_large(shape: tuple[int, ...]) -> None:
    count = 1
    for extent in shape:
        count *= extent
    if count > MOST_ELEMENTS:
        raise LayoutError(
            f"a tensor of shape {shape}",
            f"each element would be a metric of its own, and more than {MOST_ELEMENTS:,} are refused",
            "use log_stats, log_histogram or log_array",
        )


def _is_on_device(value: Any) -> bool:
    ask = getattr(value, "__dlpack_device__", None)
    if ask is None:
        return hasattr(value, "__cuda_array_interface__")
    return int(ask()[0]) not in (1, 3, 11)  # DLPack's numbers of host memory


def _with_elements(values: dict[str, Any], expanded: dict[str, list[Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in values.items():
        for known, number in expanded.get(name) or [(name, value)]:
            if known in result:
                raise same_name(known)
            result[known] = number
    return result
