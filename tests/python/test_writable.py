"""``writable``: which tensors it opens, what the array is inside and afterwards, and what it refuses."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import tensorferry as ferry
from helpers.memory import address
from helpers.torch_dtypes import CONVERTIBLE, array_dtype, name_of, raw_bytes, sample

PACKED = [torch.complex32, torch.float4_e2m1fn_x2]
VIEWABLE = [dtype for dtype in CONVERTIBLE if dtype not in PACKED]


@pytest.mark.parametrize("dtype", VIEWABLE, ids=name_of)
def test_every_dtype_that_can_be_viewed_can_be_written(dtype):
    tensor = sample(dtype)
    before = raw_bytes(tensor).copy().reshape(2, -1)
    with ferry.writable(tensor) as array:
        assert array.dtype == array_dtype(dtype)
        assert array.shape == tuple(tensor.shape)
        array[...] = array[::-1].copy()
    np.testing.assert_array_equal(raw_bytes(tensor).reshape(2, -1), before[::-1])


@pytest.mark.parametrize("dtype", PACKED, ids=name_of)
def test_a_dtype_that_numpy_cannot_view_is_refused(dtype):
    tensor = sample(dtype)
    with pytest.raises(ferry.CopyRequiredError), ferry.writable(tensor):
        pass
    assert tensor._version == 0


LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "contiguous": lambda: torch.zeros(4, 6),
    "transposed": lambda: torch.zeros(4, 6).T,
    "slice of rows": lambda: torch.zeros(4, 6)[1:3],
    "every second column": lambda: torch.zeros(4, 6)[:, 1::2],
    "permuted and sliced": lambda: torch.zeros(2, 3, 4).permute(2, 0, 1)[1:],
    "odd size-1 stride": lambda: torch.zeros(9).as_strided((1, 3), (50, 2)),
    "one row, expanded over one": lambda: torch.zeros(1, 3).expand(1, 3),
    "scalar": lambda: torch.tensor(0.0),
    "scalar out of a matrix": lambda: torch.zeros(4, 6)[2, 3],
    "empty": lambda: torch.zeros(0, 3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_written_is_what_the_tensor_and_its_base_hold(layout):
    tensor, expected = LAYOUTS[layout](), LAYOUTS[layout]()
    values = torch.arange(1.0, tensor.numel() + 1).reshape(tensor.shape)
    expected.copy_(values)
    with ferry.writable(tensor) as array:
        assert array.strides == tuple(4 * step for step in tensor.stride()) or tensor.numel() <= 3
        array[...] = values.numpy()
        assert torch.equal(tensor, expected)
    whole, expected_whole = (x if x._base is None else x._base for x in (tensor, expected))
    assert torch.equal(whole, expected_whole)


OPENABLE: dict[str, Callable[[], torch.Tensor]] = {
    "plain tensor": lambda: torch.zeros(3),
    "leaf": lambda: torch.zeros(3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.zeros(3)),
    "view of a leaf": lambda: torch.zeros(4, requires_grad=True)[1:],
    "result in a graph": lambda: torch.zeros(3, requires_grad=True) * 2,
    "view of a result": lambda: (torch.zeros(4, requires_grad=True) * 2)[1:],
    "detached": lambda: torch.zeros(3, requires_grad=True).detach(),
    "plain subclass": lambda: torch.zeros(3).as_subclass(type("Labelled", (torch.Tensor,), {})),
    "buffer of a module": lambda: torch.nn.BatchNorm1d(3).running_mean,
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("kind", OPENABLE)
def test_whatever_its_place_in_a_graph_a_tensor_opens_with_gradient_mode_off(kind, mode):
    tensor = OPENABLE[kind]()
    before, state = tensor._version, (tensor.requires_grad, tensor.is_leaf)
    with mode(), ferry.writable(tensor) as array:
        assert address(array) == tensor.data_ptr()
        inside = tensor._version
        array[:] = [1, 2, 3]
    assert tensor.tolist() == [1, 2, 3]
    assert before < inside < tensor._version
    assert (tensor.requires_grad, tensor.is_leaf) == state


@pytest.mark.parametrize("kind", OPENABLE)
def test_with_gradient_mode_on_exactly_tensors_that_require_grad_are_refused(kind):
    tensor = OPENABLE[kind]()
    before = tensor._version
    if tensor.requires_grad:
        with pytest.raises(ferry.AutogradError, match="no_grad"), ferry.writable(tensor):
            pass
        assert tensor._version == before
    else:
        with ferry.writable(tensor) as array:
            array[0] = 1
        assert tensor[0].item() == 1
        assert tensor._version > before


@pytest.mark.parametrize("inside", [True, False], ids=["inside the mode", "outside the mode"])
@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "requires grad"])
def test_inference_tensors_have_no_counter_and_open(inside, requires_grad):
    with torch.inference_mode():
        tensor = torch.zeros(4, requires_grad=requires_grad)
        view = tensor[1:]
    mode = torch.inference_mode if inside else torch.no_grad
    with mode(), ferry.writable(tensor) as whole, ferry.writable(view) as part:
        whole[0], part[0] = 5, 6
    assert tensor.tolist() == [5, 6, 0, 0]


@pytest.mark.parametrize(
    "end",
    [lambda: None, lambda: (_ for _ in ()).throw(KeyError), lambda: (_ for _ in ()).throw(KeyboardInterrupt)],
    ids=["normally", "by an error", "by an interrupt"],
)
def test_the_array_is_read_only_for_ever_however_the_block_ends(end):
    tensor = torch.zeros(3)
    arrays = []
    with contextlib.suppress(KeyError, KeyboardInterrupt), ferry.writable(tensor) as array:
        arrays.append(array)
        array[0] = 1
        next(end() or iter([None]))
    (array,) = arrays
    before = tensor._version
    for write in (
        lambda: array.__setitem__(0, 9),
        lambda: np.add(array, 9, out=array),
        lambda: array.setflags(write=True),
        lambda: setattr(array.flags, "writeable", True),
        lambda: setattr(array[:].flags, "writeable", True),
        lambda: setattr(array.view("u4").flags, "writeable", True),
    ):
        with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
            write()
    assert tensor.tolist() == [1, 0, 0]
    assert tensor._version == before == 2


def test_blocks_nest_over_one_tensor_its_views_and_others():
    tensor, other = torch.zeros(4), torch.zeros(2)
    with ferry.writable(tensor) as outer:
        with ferry.writable(tensor[2:]) as inner, ferry.writable(other) as another:
            inner[0], another[0], outer[0] = 1, 2, 3
        assert not inner.flags.writeable
        assert not another.flags.writeable
        outer[1] = 4
    assert not outer.flags.writeable
    assert tensor.tolist() == [3, 4, 1, 0]
    assert other.tolist() == [2, 0]
    assert tensor._version == 4


def test_the_array_outlives_tensor_and_block():
    tensor = torch.zeros(3)
    with ferry.writable(tensor) as array:
        array[1] = 5
        del tensor
        array[2] = 6
    assert array.tolist() == [0, 5, 6]


def test_an_alias_and_a_view_taken_before_see_the_edit_and_share_the_version():
    tensor = torch.zeros(4)
    alias, view, array = tensor.detach(), tensor[1:], ferry.to_numpy(tensor)
    with ferry.writable(view) as opened:
        opened[0] = 7
    assert alias.tolist() == array.tolist() == [0, 7, 0, 0]
    assert tensor._version == alias._version == view._version == 2


def test_a_lazy_snapshot_taken_before_or_inside_keeps_its_values():
    tensor = torch.zeros(3)
    before = ferry.to_numpy(tensor, copy="lazy")
    with ferry.writable(tensor) as array:
        array[0] = 1
        inside = ferry.to_numpy(tensor, copy="lazy")
        array[1] = 2
    assert before.tolist() == [0, 0, 0]
    assert inside.tolist() == [1, 0, 0]
    assert tensor.tolist() == [1, 2, 0]


def _own_export() -> torch.Tensor:
    class Shifted(torch.Tensor):
        def __dlpack__(self, **arguments: Any) -> Any:
            return (self.as_subclass(torch.Tensor) + 1).__dlpack__(**arguments)

    return torch.zeros(2).as_subclass(Shifted)


Z = torch.ones(2, dtype=torch.complex64)
REFUSED: dict[str, tuple[Callable[[], Any], type[ferry.FerryError], str]] = {
    "conjugate": (lambda: Z.conj(), ferry.CopyRequiredError, "conjugate"),
    "negative": (lambda: Z.conj().imag, ferry.CopyRequiredError, "negative"),
    "zero tensor": (lambda: torch._efficientzerotensor((2,)), ferry.FerryError, "no memory|overlap"),
    "expanded": (lambda: torch.zeros(1).expand(3), ferry.LayoutError, "overlap"),
    "sliding window": (lambda: torch.zeros(5).unfold(0, 2, 1), ferry.LayoutError, "overlap"),
    "sparse": (lambda: torch.eye(2).to_sparse(), ferry.LayoutError, "to_dense"),
    "meta": (lambda: torch.zeros(2, device="meta"), ferry.DeviceError, "meta"),
    "quantised": (
        lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8),
        ferry.DTypeError,
        "dequantize",
    ),
    "subclass that exports itself": (_own_export, ferry.LayoutError, "__dlpack__"),
    "array": (lambda: np.zeros(2), ferry.ArgumentError, "arrays directly"),
    "list": (lambda: [torch.zeros(2)], ferry.ArgumentError, "list"),
}


@pytest.mark.filterwarnings("ignore:.*(Sparse|quantize).*:UserWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_an_edit_would_not_reach_or_would_spread_is_refused_on_entry(kind):
    make, error, words = REFUSED[kind]
    entered = []
    with pytest.raises(error, match=words), torch.no_grad(), ferry.writable(make()):
        entered.append(True)
    assert entered == []


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_a_tensor_with_a_forward_tangent_is_refused():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(ferry.AutogradError, match="tangent"), torch.no_grad(), ferry.writable(dual):
            pass
        primal = torch.ones(2)
        with ferry.writable(primal) as array:
            array[0] = 5
    assert primal.tolist() == [5, 1]


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad], ids=["vmap", "grad"])
def test_inside_a_transform_only_what_it_closes_over_opens(transform):
    outer = torch.zeros(2)

    def function(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(ferry.FerryError, match="transform"), torch.no_grad(), ferry.writable(x):
            pass
        with ferry.writable(outer) as array:
            array[1] = 3
        return (x * 1).sum()

    transform(function)(torch.ones(2, 2) if transform is torch.func.vmap else torch.ones(2))
    assert outer.tolist() == [0, 3]
