"""Field cases: arrays for OpenCV, which draws into writable C-contiguous images only."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

import tensorferry as ferry


def test_opencv_draws_into_images_made_from_permuted_tensors() -> None:  # F102
    photograph = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    tensor = torch.from_numpy(photograph).permute(2, 0, 1).float() / 255
    permuted = (tensor * 255).round().byte().permute(1, 2, 0).numpy()[:, :, ::-1]
    with pytest.raises(cv2.error, match="Layout of the output array"):
        cv2.line(permuted, (0, 0), (29, 19), (0, 0, 255))
    image = ferry.tensor_to_images(tensor, bgr=True)
    assert np.array_equal(image, cv2.cvtColor(photograph, cv2.COLOR_RGB2BGR))
    cv2.line(image, (0, 0), (29, 19), (0, 0, 255))
    assert image[0, 0].tolist() == [0, 0, 255]
    assert np.array_equal(tensor.mul(255).round().byte().permute(1, 2, 0).numpy(), photograph)


def test_what_opencv_reads_becomes_a_tensor_as_blobs_do() -> None:
    encoded = cv2.imencode(".png", np.random.default_rng(1).integers(0, 256, (20, 30, 3), dtype=np.uint8))[1]
    image = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
    blob = torch.from_numpy(cv2.dnn.blobFromImage(image, 1 / 255, swapRB=True))
    torch.testing.assert_close(ferry.images_to_tensor([image], bgr=True), blob, rtol=2**-23, atol=0)
    assert np.array_equal(ferry.tensor_to_images(blob, bgr=True)[0], image)
