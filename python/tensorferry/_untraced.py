"""Keeps torch's compiler out of our code, which it would trace piece by piece, taking arrays for tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["untraced"]

F = TypeVar("F", bound=Callable[..., Any])

_known: dict[Any, Any] = {}


def untraced(function: F) -> F:
    """Return a version of `function` that ``torch.compile`` does not look into; itself while no compiler is loaded."""
    compiler = sys.modules.get("torch._dynamo")
    if not hasattr(compiler, "disable"):
        return function
    if function not in _known:
        _known[function] = sys.modules["torch"].compiler.disable(function)
    found: F = _known[function]
    return found
