"""``tensor_to_images``: undoes the normalisation, rounds and interleaves in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry._convert.options import choose
from tensorferry._dtypes import resolve
from tensorferry._errors import DTypeError
from tensorferry._images.colours import Colours
from tensorferry._images.read import read_tensor
from tensorferry._native import core

__all__ = ["tensor_to_images"]

_DTYPES = ("uint8", "uint16", "float16", "float32", "float64")


def tensor_to_images(
    tensor: Any, *, layout: str, bgr: bool, scale: Any, mean: Any, std: Any, dtype: Any
) -> np.ndarray[Any, Any]:
    """See :func:`tensorferry.tensor_to_images`."""
    choose("layout", layout, ("CHW", "HWC"))
    target = resolve(dtype)
    if target not in _DTYPES:
        raise DTypeError(
            f"tensor_to_images(dtype={dtype!r})", "images have other dtypes", f"pass one of {', '.join(_DTYPES)}"
        )
    read = read_tensor(tensor, layout)
    colours = Colours.parse(bgr, scale, mean, std, read.channels, target)
    factors, summands = colours.to_image()
    result = core.empty_array(target, read.shape("HWC"))
    if read.sources:
        whole = core.Source.from_array(result)
        core.convert_images(
            [whole.item(i) for i in range(len(read.sources))] if read.is_batch else [whole],
            read.sources,
            to_layout="HWC",
            from_layout=layout,
            order=colours.order,
            scale=factors,
            shift=summands,
        )
    return result
