"""Field cases: conjugate and negative views, whose memory holds other values than the tensor."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorferry as ferry

COMPLEX = [torch.complex64, torch.complex128, torch.complex32]
VALUES = np.array([[1 + 2j, -3 + 0.5j, 0 - 0j], [-0.25j, 7 - 7j, 2 + 0j]])


def _marked(dtype: torch.dtype) -> dict[str, tuple[torch.Tensor, np.ndarray]]:
    z = torch.from_numpy(VALUES).to(dtype)
    views = {
        "conjugate": (z.conj(), VALUES.conj()),
        "conjugate transposed": (z.mH, VALUES.conj().T),
        "conjugate of every other column": (z[:, ::2].conj(), VALUES[:, ::2].conj()),
    }
    if dtype is not torch.complex32:
        views["imaginary part of a conjugate"] = (z.conj().imag, -VALUES.imag)
        views["negative complex"] = (torch._neg_view(z), -VALUES)
        views["negative and conjugate"] = (torch._neg_view(z).conj(), -VALUES.conj())
    return views


PLACES = ["conjugate", "conjugate transposed", "conjugate of every other column"]
REAL_PLACES = [*PLACES, "imaginary part of a conjugate", "negative complex", "negative and conjugate"]
CASES = [(dtype, place) for dtype in COMPLEX for place in (PLACES if dtype is torch.complex32 else REAL_PLACES)]


# Once the mark was ignored and the sign was wrong; now torch refuses and leaves the two-step remedy to the user.
@pytest.mark.parametrize(("dtype", "place"), CASES, ids=lambda case: str(case).removeprefix("torch."))
@pytest.mark.parametrize("copy", [None, True, "lazy"])
def test_f017_marked_views_convert_to_the_values_they_stand_for(dtype, place, copy):
    tensor, expected = _marked(dtype)[place]
    array = ferry.to_numpy(tensor, copy=copy)
    np.testing.assert_array_equal(array, expected)
    assert array.flags.writeable is (copy is True)


@pytest.mark.parametrize(("dtype", "place"), CASES, ids=lambda case: str(case).removeprefix("torch."))
def test_f017_copy_false_refuses_a_marked_view_and_says_why(dtype, place):
    tensor, _ = _marked(dtype)[place]
    with pytest.raises(ferry.CopyRequiredError, match=r"conjugate|negative|complex32"):
        ferry.to_numpy(tensor, copy=False)


@pytest.mark.parametrize("order", ["K", "C", "F", "A"])
def test_f017_marked_views_keep_their_values_in_every_order(order):
    z = torch.from_numpy(VALUES).mH
    np.testing.assert_array_equal(ferry.to_numpy(z, order=order), VALUES.conj().T)
    assert ferry.to_numpy(z, order="C").flags.c_contiguous
    assert ferry.to_numpy(z, order="F").flags.f_contiguous


def test_f017_marked_views_convert_into_a_destination_and_to_another_dtype():
    z = torch.from_numpy(VALUES).conj()
    out = np.zeros(VALUES.shape, np.complex64)
    assert ferry.to_numpy(z, out=out) is out
    np.testing.assert_array_equal(out, VALUES.conj().astype(np.complex64))
    imag = ferry.to_numpy(z.imag, dtype="float32")
    assert imag.dtype == np.float32
    np.testing.assert_array_equal(imag, -VALUES.imag.astype(np.float32))


def test_f017_a_marked_view_is_left_as_it_was():
    z = torch.from_numpy(VALUES).conj()
    ferry.to_numpy(z)
    assert z.is_conj()
    assert z._version == 0


@pytest.mark.parametrize(
    ("make", "expected"),
    [(lambda z: z.conj(), [1 - 2j]), (lambda z: torch._neg_view(z), [-1 - 2j]), (lambda z: z.conj().imag, [-2])],
    ids=["conjugate", "negative", "imaginary part of a conjugate"],
)
def test_f017_marked_leaves_of_a_nest_and_of_a_graph_convert(make, expected):
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    nest = ferry.to_numpy({"view": make(z), "plain": [z]})
    np.testing.assert_array_equal(nest["view"], expected)
    np.testing.assert_array_equal(nest["plain"][0], [1 + 2j])
