"""Names that moved between NumPy 1.26 and NumPy 2."""

from __future__ import annotations

import numpy as np

__all__ = ["byte_bounds"]

byte_bounds = np.lib.array_utils.byte_bounds if hasattr(np.lib, "array_utils") else np.byte_bounds
