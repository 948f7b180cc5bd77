"""What is asked of a tensor's memory before anything is read from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tensorferry._errors import LayoutError
from tensorferry._native import core
from tensorferry._torch import fallback

if TYPE_CHECKING:
    import torch

__all__ = ["described", "require_storage"]


def described(alias: torch.Tensor, reads_as: str) -> core.Source:
    """Describe what reading will give, without reading: of a tensor on another device, the packed copy on the host."""
    shape, strides, itemsize = tuple(alias.shape), tuple(alias.stride()), alias.element_size()
    if alias.device.type != "cpu":
        strides = _as_read(shape, fallback.copied_strides(shape, strides))
    source = core.Source.described(reads_as, list(shape), [step * itemsize for step in strides])
    return source.relabelled(reads_as, conjugated=alias.is_conj(), negated=alias.is_neg())


def _as_read(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Give axes of one element or none the step that reading through DLPack gives them: that of C order."""
    in_c_order = (math.prod(max(extent, 1) for extent in shape[axis + 1 :]) for axis in range(len(shape)))
    return tuple(
        step if extent > 1 else packed for extent, step, packed in zip(shape, strides, in_c_order, strict=True)
    )


def require_storage(x: torch.Tensor) -> None:
    """Refuse a tensor that reaches beyond its storage; a backend that shows no storage is trusted."""
    if x.numel() == 0:
        return
    try:
        nbytes = x.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):
        return
    last = x.storage_offset() + sum((extent - 1) * step for extent, step in zip(x.shape, x.stride(), strict=True))
    if (last + 1) * x.element_size() > nbytes:
        raise LayoutError(
            f"a {tuple(x.shape)} tensor whose storage holds {nbytes} bytes",
            "its memory was taken away (storage().resize_(0), as sharded training does)",
            "restore the storage first, for example by gathering the parameters",
        )
