"""Is torch's compiler tracing us at the moment? Asked in a way that it can trace itself."""

from __future__ import annotations

import sys

__all__ = ["is_compiling"]


def is_compiling() -> bool:
    """Return True where the caller is traced by ``torch.compile``; False while torch is not loaded."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling()
