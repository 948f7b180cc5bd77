"""Turns the two photographs that scikit-learn ships into a normalised batch, and back into photographs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorferry as ferry
from tensorferry._demo._compare import same_arrays
from tensorferry._demo._report import Conversion, Section

if TYPE_CHECKING:
    import torch

__all__ = ["load", "there_and_back"]

# Channel means and deviations of ImageNet, as torchvision's documentation gives them.
_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)


def load() -> list[np.ndarray[Any, Any]]:
    """Return two photographs, uint8, ``(427, 640, 3)``, read-only."""
    from sklearn.datasets import load_sample_images

    return list(load_sample_images().images)


def normalised(pixels: torch.Tensor) -> torch.Tensor:
    """Return ``(n, 3, height, width)`` from pixels ``(n, height, width, 3)`` between 0 and 255, both float32."""
    import torch

    return ((pixels / 255 - torch.tensor(_MEAN)) / torch.tensor(_STD)).permute(0, 3, 1, 2)


def denormalised(batch: torch.Tensor) -> torch.Tensor:
    """Return pixels again, rounded to whole numbers, float32."""
    import torch

    return ((batch.permute(0, 2, 3, 1) * torch.tensor(_STD) + torch.tensor(_MEAN)) * 255).round_()


def there_and_back(photographs: list[np.ndarray[Any, Any]]) -> Section:
    """Convert, compute in torch, convert back; NumPy alone computes what must come out."""
    pixels = ferry.stack(photographs, to="torch", dtype="float32")
    batch = normalised(pixels)
    array = ferry.to_numpy(batch)
    whole = denormalised(batch)
    restored = ferry.to_numpy(whole, dtype="uint8", casting="unsafe")

    stacked = np.stack(photographs)
    mean, std = np.array(_MEAN, "f4"), np.array(_STD, "f4")
    expected = ((stacked.astype("f4") / np.float32(255) - mean) / std).transpose(0, 3, 1, 2)
    views = [ferry.from_numpy(restored_one, copy=True) for restored_one in restored]
    return Section(
        "Photographs",
        f"{len(photographs)} of {photographs[0].shape} uint8 to a {tuple(batch.shape)} float32 batch, and back",
        [
            Conversion("one photograph", "from_numpy(photo)", ferry.plan(photographs[0], to="torch")),
            Conversion("the batch, channels first", "to_numpy(batch)", ferry.plan(batch)),
            Conversion(
                "back to pixels",
                'to_numpy(pixels, dtype="uint8", casting="unsafe")',
                ferry.plan(whole, dtype="uint8", casting="unsafe"),
            ),
        ],
        [
            same_arrays("stack: equal to np.stack(...).astype", pixels.numpy(), stacked.astype("f4")),
            same_arrays(
                "from_numpy: equal to the photograph", ferry.from_numpy(photographs[0]).numpy(), photographs[0]
            ),
            same_arrays("the batch: equal to NumPy's arithmetic", array, expected),
            same_arrays("the pixels: equal to the photographs", restored, stacked),
            same_arrays("tensors of them: equal to the photographs", np.stack([v.numpy() for v in views]), stacked),
        ],
    )
