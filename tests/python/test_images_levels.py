"""Conversions of images give the same bits with the kernels of every processor level."""

from __future__ import annotations

from helpers.subprocess import stdout_of
from tensorferry._native import core

LEVELS = ["portable", "avx2", "avx512"]

PROGRAM = """
import os
os.environ["TENSORFERRY_CPU_LEVEL"] = {level!r}
import hashlib
import numpy as np, torch
import tensorferry as ferry
from helpers.images import MEAN, STD, VIEWS, picture
assert ferry._native.core.processor_level() == {level!r}
digest = hashlib.sha256()
for image_dtype in ("uint8", "uint16", "float16", "float32", "float64"):
    for channels in (1, 2, 3, 4):
        for view in ("whole", "flipped left to right", "columns first", "planes behind", "other byte order"):
            image = VIEWS[view](picture(image_dtype, channels))
            arguments = dict(mean=MEAN[:channels], std=STD[:channels])
            for dtype in ("float16", "bfloat16", "float32", "float64"):
                tensor = ferry.images_to_tensor(image, dtype=dtype, **arguments)
                digest.update(tensor.view(torch.uint8).numpy())
                for back in ("uint8", "uint16", "float32"):
                    digest.update(ferry.tensor_to_images(tensor, dtype=back, **arguments))
large = picture("uint8", height=1203, width=801)
digest.update(ferry.images_to_tensor(large, bgr=True).numpy())
print(digest.hexdigest())
"""


def test_every_level_gives_the_same_bits() -> None:
    levels = LEVELS[: LEVELS.index(core.processor_level()) + 1]
    digests = {level: stdout_of(PROGRAM.format(level=level)) for level in levels}
    assert len(set(digests.values())) == 1, digests
