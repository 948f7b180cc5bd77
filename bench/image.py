"""Images as cameras and OpenCV give them (BGR, HWC, uint8) to what networks take (RGB, CHW, float32, normalised)."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import tensorferry as ferry
from tensorferry.bench import Case, Inputs, Point, at_least, best, close, naive, ours, share_of_limit
from tensorferry.bench.cases._inputs import named

__all__ = ["CASES"]

Array = np.ndarray[Any, Any]

_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)
_HD: Point = {"height": 1080, "width": 1920}
_SMALL: Point = {"height": 270, "width": 480}


def _image(rng: np.random.Generator, height: int, width: int) -> Inputs:
    import torch

    mean, std = torch.tensor(_MEAN).view(3, 1, 1), torch.tensor(_STD).view(3, 1, 1)
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return named(image=image, mean=_MEAN, std=_STD, mean_tensor=mean, std_tensor=std, cv2=_opencv())


def _images(rng: np.random.Generator, height: int, width: int, count: int) -> Inputs:
    images = [rng.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(count)]
    return named(images=images, cv2=_opencv())


def _sent(rng: np.random.Generator, height: int, width: int, count: int, device: str = "cuda") -> Inputs:
    """Make host images, ordinary and in torch's pinned memory, for a device that is there."""
    inputs = _images(rng, height, width, count)
    torch = inputs["torch"]
    pinned = torch.from_numpy(np.stack(inputs["images"])).pin_memory()
    return inputs | {"pinned": pinned, "device": device}


def _sent_by_torch(inputs: Inputs) -> Any:
    there = inputs["pinned"].to(inputs["device"], non_blocking=True)
    return there.permute(0, 3, 1, 2).flip(1).float().div_(255).contiguous()


def _opencv() -> Any:
    try:
        return importlib.import_module("cv2")
    except ImportError:
        return None  # candidates that need it are left out


def _normalised(image: Array) -> Array:
    """Return the formula itself, computed in float64 and rounded once."""
    scaled: Array = np.ascontiguousarray((image[:, :, ::-1] / 255.0).transpose(2, 0, 1)).astype(np.float32)
    return scaled


def _standardised(image: Array) -> Array:
    centred = (image[:, :, ::-1] / 255.0 - np.array(_MEAN)) / np.array(_STD)
    return np.ascontiguousarray(centred.transpose(2, 0, 1)).astype(np.float32)


def _recipe(inputs: Inputs) -> Any:
    """The first article's: every step makes a temporary, the second one in float64."""
    cv2, torch = inputs["cv2"], inputs["torch"]
    rgb = cv2.cvtColor(inputs["image"], cv2.COLOR_BGR2RGB)
    scaled = (rgb / 255.0).astype(np.float32)
    return torch.from_numpy(scaled).permute(2, 0, 1).contiguous()


def _torch_chain(inputs: Inputs) -> Any:
    t = inputs["torch"].from_numpy(inputs["image"])
    return t.permute(2, 0, 1).flip(0).contiguous().float().div_(255)


def _torch_standardised(inputs: Inputs) -> Any:
    return _torch_chain(inputs).sub_(inputs["mean_tensor"]).div_(inputs["std_tensor"])


def _blob(inputs: Inputs) -> Any:
    blob = inputs["cv2"].dnn.blobFromImage(inputs["image"], 1 / 255, swapRB=True)
    return inputs["torch"].from_numpy(blob)[0]


def _blob_standardised(inputs: Inputs) -> Any:
    return _blob(inputs).sub_(inputs["mean_tensor"]).div_(inputs["std_tensor"])


def _blobs(inputs: Inputs) -> Any:
    return inputs["torch"].from_numpy(inputs["cv2"].dnn.blobFromImages(inputs["images"], 1 / 255, swapRB=True))


def _torch_batch(inputs: Inputs) -> Any:
    torch = inputs["torch"]
    batch = torch.stack([torch.from_numpy(image) for image in inputs["images"]])
    return batch.permute(0, 3, 1, 2).flip(1).contiguous().float().div_(255)


def _recipe_batch(inputs: Inputs) -> Any:
    return inputs["torch"].stack([_recipe(inputs | {"image": image}) for image in inputs["images"]])


def _bytes_moved(inputs: Inputs) -> int:
    """One byte read and four written for each value."""
    images = inputs.get("images") or [inputs["image"]]
    return sum(5 * int(image.size) for image in images)


_RECIPE = "cvtColor(image) / 255, astype, permute, contiguous"
_BLOB = "cv2.dnn.blobFromImage(image, 1 / 255, swapRB=True)"
_WITHIN_ROUNDING = close(rtol=1e-6, atol=1e-6)

_CASES = (
    Case(
        name="image.one",
        title="A BGR uint8 image to an RGB float32 tensor, CHW, from 0 to 1",
        setup=_image,
        candidates=(
            ours("ferry.images_to_tensor(image, bgr=True)"),
            naive(_RECIPE, _recipe, needs=("cv2",)),
            best("torch.from_numpy(image).permute(2, 0, 1).flip(0).contiguous().float().div_(255)", _torch_chain),
            best(_BLOB, _blob, needs=("cv2",)),
        ),
        expected=lambda inputs: _normalised(inputs["image"]),
        check=_WITHIN_ROUNDING,
        nbytes=_bytes_moved,
        limit="non-temporal copy",
        goals=(at_least(8, _RECIPE), at_least(2, _BLOB), share_of_limit(0.6)),
        points=(_HD,),
        quick=(_HD,),
    ),
    Case(
        name="image.standardised",
        title="A BGR uint8 image to an RGB float32 tensor, CHW, with mean and deviation of each colour taken out",
        setup=_image,
        candidates=(
            ours("ferry.images_to_tensor(image, bgr=True, mean=mean, std=std)"),
            best("torch.from_numpy(image)..., .sub_(mean).div_(std)", _torch_standardised),
            best("cv2.dnn.blobFromImage(image), .sub_(mean).div_(std)", _blob_standardised, needs=("cv2",)),
        ),
        expected=lambda inputs: _standardised(inputs["image"]),
        check=close(rtol=1e-5, atol=2e-6),  # the difference of two numbers near 0.5 has lost their last digits
        nbytes=_bytes_moved,
        limit="non-temporal copy",
        points=(_HD,),
        quick=(_SMALL,),
    ),
    Case(
        name="image.batch",
        title="A list of BGR uint8 images to one RGB float32 tensor, NCHW, from 0 to 1",
        setup=_images,
        candidates=(
            ours("ferry.images_to_tensor(images, bgr=True)"),
            naive("torch.stack of the recipe's results", _recipe_batch, needs=("cv2",)),
            best("torch.stack(...).permute(0, 3, 1, 2).flip(1).contiguous().float().div_(255)", _torch_batch),
            best("cv2.dnn.blobFromImages(images, 1 / 255, swapRB=True)", _blobs, needs=("cv2",)),
        ),
        expected=lambda inputs: np.stack([_normalised(image) for image in inputs["images"]]),
        check=_WITHIN_ROUNDING,
        nbytes=_bytes_moved,
        limit="non-temporal copy",
        points=({"height": 480, "width": 640, "count": 8}, {"height": 224, "width": 224, "count": 16}),
        quick=({"height": 224, "width": 224, "count": 4},),
    ),
    Case(
        name="image.to_device",
        title="A list of BGR uint8 images of the host to one RGB float32 tensor on the device, NCHW, from 0 to 1",
        setup=_sent,
        candidates=(
            ours("ferry.images_to_tensor(images, bgr=True, device=device)"),
            naive("ferry.images_to_tensor(images, bgr=True).to(device)"),
            naive("torch.stack(...).to(device)...", lambda inputs: _torch_batch(inputs).to(inputs["device"])),
            best("pinned.to(device, non_blocking=True).permute().flip().float().div_(255)", _sent_by_torch),
        ),
        expected=lambda inputs: np.stack([_normalised(image) for image in inputs["images"]]),
        check=_WITHIN_ROUNDING,
        nbytes=lambda inputs: sum(int(image.size) for image in inputs["images"]),
        limit="h2d",
        goals=(share_of_limit(0.93, lambda point: int(point["count"]) >= 16),),
        points=({"height": 224, "width": 224, "count": 64}, {"height": 1080, "width": 1920, "count": 16}),
        quick=({"height": 224, "width": 224, "count": 64},),
        devices=("cuda",),
    ),
)

CASES = _CASES if hasattr(ferry, "images_to_tensor") else ()
