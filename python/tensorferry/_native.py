"""The one importer of the native module; explains a failed import."""

from __future__ import annotations

import sys

try:
    import tensorferry._core as core
except ImportError as error:
    raise ImportError(
        f"tensorferry's native module cannot be loaded by Python {sys.version.split()[0]} at {sys.executable}: "
        f"{error}; reinstall it with this interpreter (python -m pip install --force-reinstall tensorferry), "
        "NumPy 1.26 or newer must be importable"
    ) from error

__all__ = ["core"]
