"""What a type checker knows of each call; checked by ``mypy tests/typing``, never run."""

from typing import Any, assert_type

import numpy as np
import torch

import tensorferry as ferry

tensor = torch.ones(3)
array = np.ones(3, dtype=np.float32)
buffer = np.empty(3, dtype=np.float64)

assert_type(ferry.to_numpy(tensor), np.ndarray[Any, Any])
assert_type(ferry.to_numpy(tensor, copy="lazy"), np.ndarray[Any, Any])
assert_type(ferry.to_numpy(tensor, dtype=np.float64), np.ndarray[Any, np.dtype[np.float64]])
assert_type(ferry.to_numpy(tensor, dtype="numpy"), np.ndarray[Any, Any])
assert_type(ferry.to_numpy(tensor, dtype={"floating": "float16"}), np.ndarray[Any, Any])
assert_type(ferry.to_numpy(array).dtype, np.dtype[np.float32])
assert_type(ferry.to_numpy(tensor, out=buffer).dtype, np.dtype[np.float64])
assert_type(ferry.to_numpy({"a": tensor}), Any)
assert_type(ferry.from_numpy(array), torch.Tensor)
assert_type(ferry.from_numpy(array, dtype=torch.float16, requires_grad=True), torch.Tensor)
assert_type(ferry.from_numpy([array]), Any)
assert_type(ferry.check(tensor, finite=True), torch.Tensor)
assert_type(ferry.plan(tensor).copies, int)
assert_type(ferry.shares_memory(tensor, array), bool)
with ferry.writable(tensor) as writable:
    assert_type(writable, np.ndarray[Any, Any])
