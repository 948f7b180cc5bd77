"""Trees of tensors to save, and how to compare what comes back with them, by torch and NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

__all__ = ["FORMATS", "bits", "same_bits", "tree", "write_by_hand"]

# Format, and what ends a path that means it.
FORMATS: dict[str, str] = {"safetensors": ".safetensors", "npz": ".npz", "folder": "/"}


def tree(seed: int = 0) -> dict[str, torch.Tensor]:
    """Return tensors of several dtypes and layouts; different ones for each seed."""
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(37, 53, generator=generator)
    return {
        "weight": matrix,
        "transposed": torch.randn(29, 31, generator=generator).t(),
        "half": matrix[:5].bfloat16(),
        "eighth": matrix[0].to(torch.float8_e5m2),
        "steps": torch.tensor(seed),
        "mask": matrix > 0,
        "nothing": torch.empty(0, 4),
        "every_other": matrix[:, ::2],
    }


def bits(x: Any) -> bytes:
    """Return the bytes of a tensor or array in C order."""
    if isinstance(x, torch.Tensor):
        dense = x.detach().resolve_conj().resolve_neg().contiguous()
        return bytes(dense.reshape(-1).view(torch.uint8).numpy().tobytes()) if dense.numel() else b""
    return np.ascontiguousarray(x).tobytes()


def same_bits(found: Any, expected: dict[str, torch.Tensor]) -> bool:
    """Are names, dtypes, shapes and bits those of `expected`?"""
    return set(found) == set(expected) and all(
        str(found[name].dtype).removeprefix("torch.") == str(t.dtype).removeprefix("torch.")
        and tuple(found[name].shape) == tuple(t.shape)
        and bits(found[name]) == bits(t)
        for name, t in expected.items()
    )


def write_by_hand(path: str, header: bytes, data: bytes) -> None:
    """Write a .safetensors file as its specification says, with any header."""
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + data)
