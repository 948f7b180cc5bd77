"""What autograd knows of a tensor, in both directions of differentiation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["has_tangent", "may_have_tangents", "part_in_autograd"]


def may_have_tangents() -> bool:
    """Is forward-mode differentiation under way, so that tensors can carry tangents?"""
    from torch.autograd import forward_ad

    return bool(getattr(forward_ad, "_current_level", 0) >= 0)


def has_tangent(x: torch.Tensor) -> bool:
    """Does `x` carry a tangent of forward-mode differentiation?"""
    from torch.autograd import forward_ad

    return forward_ad.unpack_dual(x).tangent is not None  # type: ignore[no-untyped-call]


def part_in_autograd(x: torch.Tensor) -> str:
    """Return how a message says that `x` is differentiated, or "" where it is not."""
    if x.requires_grad:
        return "requires grad"
    return "carries a tangent" if has_tangent(x) else ""
