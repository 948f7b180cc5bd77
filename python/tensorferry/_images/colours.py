"""The arithmetic of a conversion: one factor and one summand for each channel, and the order of the channels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._errors import ArgumentError
from tensorferry._native import core

__all__ = ["Colours"]

# What "auto" means: the largest value of an integer dtype becomes 1.
_SCALES = {"uint8": 1 / 255, "uint16": 1 / 65535}


@dataclass(frozen=True)
class Colours:
    """What is done to the values of each channel.

    Attributes
    ----------
    order : list of int
        Of the channels of an image, in the order of the tensor's; swapping two channels is its own inverse.
    scale : float
        Takes an image's values to the range that `mean` and `std` are in.
    mean, std : list of float
        One for each channel, in the order of the tensor's channels.
    """

    order: list[int]
    scale: float
    mean: list[float]
    std: list[float]

    @classmethod
    def parse(cls, bgr: object, scale: object, mean: object, std: object, channels: int, image_dtype: str) -> Colours:
        """Check the arguments for images of so many channels and of this dtype."""
        colours = cls(
            _order(bgr, channels),
            _scale(scale, image_dtype),
            _per_channel("mean", mean, channels, 0.0),
            _per_channel("std", std, channels, 1.0),
        )
        if 0.0 in colours.std:
            raise ArgumentError(f"std={std!r}", "nothing can be divided by zero", "pass positive deviations")
        factors, summands = colours.to_tensor()
        back = colours.to_image()
        if not all(map(math.isfinite, (*factors, *summands, *back[0], *back[1]))):
            raise ArgumentError(
                f"scale={scale!r} with mean={mean!r} and std={std!r}",
                "their quotients are beyond the range of float64",
                "pass numbers nearer to 1",
            )
        return colours

    def to_tensor(self) -> tuple[list[float], list[float]]:
        """Return factors and summands of (x * scale - mean) / std, in the order of the tensor's channels."""
        return [self.scale / s for s in self.std], [-m / s for m, s in zip(self.mean, self.std, strict=True)]

    def to_image(self) -> tuple[list[float], list[float]]:
        """Return factors and summands of (y * std + mean) / scale, in the order of the image's channels."""
        return [self.std[c] / self.scale for c in self.order], [self.mean[c] / self.scale for c in self.order]


def _order(bgr: object, channels: int) -> list[int]:
    if not isinstance(bgr, (bool, np.bool_)):
        raise ArgumentError(f"bgr={bgr!r}", "it is a yes or a no", "pass True or False")
    order = list(range(channels))
    if not bgr:
        return order
    if channels < 3:
        raise ArgumentError(
            f"bgr=True for images of {channels} {'channel' if channels == 1 else 'channels'}",
            "there are no blue and red to swap",
            "leave bgr out for images without colours",
        )
    return [2, 1, 0, *order[3:]]


def _scale(scale: object, image_dtype: str) -> float:
    if isinstance(scale, str) and scale == "auto":
        return _SCALES.get(image_dtype, 1.0)
    if isinstance(scale, (Real, np.number)) and not isinstance(scale, bool):
        number = float(scale)
        if math.isfinite(number) and number != 0.0:
            return number
    raise ArgumentError(
        f"scale={scale!r}", "values are multiplied by it", 'pass "auto" or a number other than 0, such as 1 / 255'
    )


def _per_channel(name: str, value: Any, channels: int, default: float) -> list[float]:
    if value is None:
        return [default] * channels
    try:
        plain = core.to_numpy(value.detach(), dtype="float64") if _torch.is_tensor(value) else value
        numbers: list[float] = np.asarray(plain, dtype=np.float64).ravel().tolist()
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{name}={value!r}", f"it is no number and no list of them ({error})", f"pass {channels} numbers, or one"
        ) from error
    if not all(map(math.isfinite, numbers)):
        raise ArgumentError(f"{name}={value!r}", "its numbers are not all finite", "pass finite numbers")
    if len(numbers) not in (1, channels):
        raise ArgumentError(
            f"{name} of {len(numbers)} numbers for images of {channels} channels",
            "each channel has one",
            f"pass {channels} numbers, or one for all",
        )
    return numbers * channels if len(numbers) == 1 else numbers
