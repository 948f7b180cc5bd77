"""What the native entry points answer by themselves is what the general path in Python answers."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorferry as ferry
from tensorferry._convert import from_numpy as general_from_numpy
from tensorferry._convert import to_numpy as general_to_numpy

ARRAYS = ["float64", "float32", "float16", "int64", "int16", "uint8", "bool", "complex64", "datetime64[s]", ">f4"]
TENSORS = [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.bool, torch.complex64, torch.float8_e5m2]
DTYPES = [
    None,
    "numpy",
    "bits",
    "float32",
    np.float16,
    np.dtype("int64"),
    torch.bfloat16,
    "bool",
    ">f8",
    "nonsense",
    3.5,
]
CASTINGS = ["no", "safe", "same_kind", "unsafe", "same_value", "wrong"]
LAYOUTS = [
    lambda a: a,
    lambda a: a.T,
    lambda a: a[:, ::-1],
    lambda a: a[::2, 1:],
    lambda a: a[:0],
    lambda a: a[:1, :1],
    lambda a: np.broadcast_to(a[:1], a.shape),
]


def outcome(call):
    """What a call gives: dtype, shape, strides, flags and bytes, or the class and the words of its error."""
    try:
        result = call()
    except (ferry.FerryError, ImportError) as error:
        return type(error), str(error)
    if isinstance(result, torch.Tensor):
        bits = result.contiguous().view(torch.uint8) if result.numel() and result.dim() else result
        return result.dtype, tuple(result.shape), result.stride(), result.requires_grad, bits.tolist()
    return result.dtype, result.shape, result.strides, result.flags.writeable, result.tobytes()


def values(dtype, layout):
    numbers = np.arange(24).reshape(4, 6) - 3
    array = numbers.astype("i8").astype(dtype) if "datetime" in dtype else (numbers * 1.5).astype(dtype)
    return layout(array)


@settings(max_examples=400)
@given(
    dtype=st.sampled_from(ARRAYS),
    layout=st.sampled_from(LAYOUTS),
    wanted=st.sampled_from(DTYPES),
    casting=st.sampled_from(CASTINGS),
    copy=st.sampled_from([None, True, False]),
)
@pytest.mark.filterwarnings("ignore")
def test_from_numpy_answers_as_the_general_path(dtype, layout, wanted, casting, copy):
    a = values(dtype, layout)
    arguments = {"dtype": wanted, "casting": casting, "copy": copy}
    assert outcome(lambda: ferry.from_numpy(a, **arguments)) == outcome(
        lambda: general_from_numpy.convert(a, **arguments)
    )


@settings(max_examples=400)
@given(
    dtype=st.sampled_from(TENSORS),
    transposed=st.booleans(),
    wanted=st.sampled_from(DTYPES),
    casting=st.sampled_from(CASTINGS),
    copy=st.sampled_from([None, True, False]),
    order=st.sampled_from("KCFA"),
)
@pytest.mark.filterwarnings("ignore")
def test_to_numpy_answers_as_the_general_path(dtype, transposed, wanted, casting, copy, order):
    t = (torch.arange(24).reshape(4, 6) * 1.5 - 3).to(dtype)
    t = t.t() if transposed else t
    assert outcome(lambda: ferry.to_numpy(t, dtype=wanted, casting=casting, copy=copy, order=order)) == outcome(
        lambda: general_to_numpy.convert(t, copy, wanted, casting, order, None, None, "auto")
    )


OUTS = {
    "fitting": lambda: np.full((4, 6), 7, "f4"),
    "of another dtype": lambda: np.full((4, 6), 7, "i2"),
    "of another byte order": lambda: np.full((4, 6), 7, ">f4"),
    "in Fortran order": lambda: np.full((4, 6), 7, "f4", order="F"),
    "strided": lambda: np.full((8, 12), 7, "f4")[::2, ::-2],
    "of another shape": lambda: np.full((6, 4), 7, "f4"),
    "overlapping itself": lambda: np.lib.stride_tricks.as_strided(np.zeros(16, "f4"), (4, 6), (4, 4)),
    "read-only": lambda: np.broadcast_to(np.float32(7), (4, 6)),
}


@pytest.mark.parametrize("name", OUTS)
@pytest.mark.parametrize(
    ("wanted", "casting"), list(itertools.product([None, "float32", "bits"], ["same_kind", "same_value"]))
)
def test_filling_answers_as_the_general_path(name, wanted, casting):
    t = torch.arange(24.0).reshape(4, 6) - 0.5
    fast, slow = OUTS[name](), OUTS[name]()
    assert outcome(lambda: ferry.to_numpy(t, out=fast, dtype=wanted, casting=casting)) == outcome(
        lambda: general_to_numpy.convert(t, None, wanted, casting, "K", slow, None, "auto")
    )
    assert fast.tobytes() == slow.tobytes()


def test_a_destination_inside_the_source_is_refused_whichever_way():
    t = torch.arange(24.0)
    inside = t.numpy()[4:16]
    with pytest.raises(ferry.BufferMismatchError, match="overlaps the source"):
        ferry.to_numpy(t[:12], out=inside)
    apart = t.numpy()[12:]
    assert ferry.to_numpy(t[:12], out=apart) is apart
    assert t.tolist() == [*range(12)] * 2


def test_nests_of_arrays_convert_as_leaf_by_leaf():
    shared = np.arange(3.0)
    nest = {"a": [shared, shared], "b": (np.arange(6)[::-1], None, "text"), "c": torch.ones(2), "d": np.float32(3)}
    result = ferry.from_numpy(nest)
    assert list(result) == ["a", "b", "c", "d"]
    assert result["a"][0] is result["a"][1]
    assert result["a"][0].data_ptr() == shared.ctypes.data
    assert result["b"][0].tolist() == [5, 4, 3, 2, 1, 0]
    assert result["b"][1:] == (None, "text")
    assert result["c"] is nest["c"]
    with pytest.raises(ferry.DTypeError, match=r"leaf \['x'\]\[1\]: "):
        ferry.from_numpy({"x": [shared, np.array(["text"])]})
    nest["a"].append(nest)
    with pytest.raises(ferry.LayoutError, match="contains itself"):
        ferry.from_numpy(nest)
