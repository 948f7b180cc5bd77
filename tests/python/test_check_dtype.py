"""``check`` of dtypes: exact ones, classes and alternatives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from helpers.violations import violations
from tensorferry._check.check import check

FLOAT32 = np.zeros(2, np.float32)
SWAPPED = FLOAT32.astype(FLOAT32.dtype.newbyteorder())


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        pytest.param(FLOAT32, np.float32, id="NumPy type"),
        pytest.param(FLOAT32, torch.float32, id="torch dtype for an array"),
        pytest.param(torch.zeros(2), np.dtype("f4"), id="NumPy dtype for a tensor"),
        pytest.param(torch.zeros(2), "float32", id="name"),
        pytest.param(torch.zeros(2), "torch.float32", id="torch's name"),
        pytest.param(torch.zeros(2, dtype=torch.bfloat16), ml_dtypes.bfloat16, id="ml_dtypes type"),
        pytest.param(torch.zeros(2, dtype=torch.complex32), "complex32", id="a dtype only torch has"),
        pytest.param(torch.zeros(2), (torch.float16, "float32"), id="alternatives"),
        pytest.param(torch.zeros(2, dtype=torch.float8_e5m2), "floating", id="floating float8"),
        pytest.param(torch.zeros(2, dtype=torch.float16), "floating", id="floating float16"),
        pytest.param(SWAPPED, "floating", id="floating in the other byte order"),
        pytest.param(SWAPPED, SWAPPED.dtype, id="exactly the other byte order"),
        pytest.param(np.zeros(2, np.longdouble), "floating", id="floating long double"),
        pytest.param(np.zeros(2, np.clongdouble), "complex", id="complex long double"),
        pytest.param(np.zeros(2, np.int8), "integer", id="integer int8"),
        pytest.param(torch.zeros(2, dtype=torch.uint16), "integer", id="integer uint16"),
        pytest.param(torch.zeros(2, dtype=torch.int32), "signed", id="signed"),
        pytest.param(np.zeros(2, np.uint64), "unsigned", id="unsigned"),
        pytest.param(torch.zeros(2, dtype=torch.complex64), "complex", id="complex"),
        pytest.param(torch.zeros(2, dtype=torch.bool), "bool", id="bool"),
        pytest.param(np.zeros(2, bool), bool, id="Python bool"),
        pytest.param(np.zeros(2, "M8[s]"), "M8[s]", id="dates"),
        pytest.param(b"abc", "uint8", id="bytes"),
    ],
)
def test_dtypes_that_match(x, dtype):
    assert check(x, dtype=dtype) is x


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        pytest.param(np.zeros(2), np.float32, id="another width"),
        pytest.param(SWAPPED, "float32", id="another byte order"),
        pytest.param(torch.zeros(2, dtype=torch.float16), torch.bfloat16, id="bfloat16 is not float16"),
        pytest.param(torch.zeros(2, dtype=torch.bool), "integer", id="bool is no integer"),
        pytest.param(np.zeros(2, np.uint8), "signed", id="unsigned is not signed"),
        pytest.param(np.zeros(2, np.int8), "unsigned", id="signed is not unsigned"),
        pytest.param(np.zeros(2, np.complex64), "floating", id="complex is not floating"),
        pytest.param(np.zeros(2, "m8[s]"), "integer", id="durations are no integers"),
        pytest.param(torch.zeros(2, dtype=torch.uint8).view(torch.bits8), "unsigned", id="raw bits are no integers"),
        pytest.param(np.zeros(2, "M8[s]"), "M8[ms]", id="another unit"),
        pytest.param(np.array([None]), ("floating", "integer", "complex", "bool"), id="objects"),
    ],
)
def test_dtypes_that_do_not_match(x, dtype):
    (only,) = violations(x, dtype=dtype)
    assert only.startswith("dtype is ")


def test_a_dtype_violation_names_the_byte_order_and_the_alternatives():
    assert violations(SWAPPED, dtype=("float32", "integer")) == (
        f"dtype is float32 in the other byte order ({SWAPPED.dtype.str}), wanted float32 or integer",
    )
