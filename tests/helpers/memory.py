"""Where memory lies and how much of it the process holds, asked of torch, NumPy and the operating system."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch

__all__ = ["address", "resident_nbytes"]


def address(x: torch.Tensor | np.ndarray) -> int:
    """Return the address of the first element."""
    return x.ctypes.data if isinstance(x, np.ndarray) else x.data_ptr()


def resident_nbytes() -> int:
    """Return the bytes of this process that are in physical memory (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
