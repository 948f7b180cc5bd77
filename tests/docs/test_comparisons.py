"""What the guides say about torch's and NumPy's own calls, asked of torch and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.subprocess import run_python


def _read_only() -> np.ndarray[Any, Any]:
    array = np.ones(2)
    array.flags.writeable = False
    return array


TO_NUMPY: dict[str, Callable[[torch.Tensor], Any]] = {
    "numpy()": lambda t: t.numpy(),
    "asarray": np.asarray,
    "np.from_dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("convert", TO_NUMPY.values(), ids=TO_NUMPY.keys())
def test_torch_and_numpy_share_writable_memory_and_refuse_graphs_devices_and_bfloat16(
    convert: Callable[[torch.Tensor], Any],
) -> None:
    t = torch.zeros(2)
    convert(t)[0] = 5
    assert t.tolist() == [5, 0]
    with pytest.raises((RuntimeError, BufferError), match="grad"):
        convert(torch.zeros(2, requires_grad=True))
    with pytest.raises((TypeError, RuntimeError, BufferError)):
        convert(torch.zeros(2, dtype=torch.bfloat16))
    with pytest.raises((RuntimeError, BufferError), match="conj"):
        convert(torch.tensor([1 + 2j]).conj())


@pytest.mark.parametrize("convert", [TO_NUMPY["numpy()"], TO_NUMPY["asarray"]], ids=["numpy()", "asarray"])
def test_negative_views_are_refused_by_numpy(convert: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(RuntimeError, match="negative bit"):
        convert(torch.tensor([1 + 2j]).conj().imag)


def test_np_from_dlpack_gives_the_wrong_sign_of_a_negative_view() -> None:
    imag = torch.tensor([1 + 2j]).conj().imag
    assert imag.item() == -2
    assert np.from_dlpack(imag)[0] == 2
    assert ferry.to_numpy(imag)[0] == -2


def test_numpy_force_leaves_the_graph_and_resolves_marks_and_shares_when_it_can() -> None:
    w = torch.zeros(2, requires_grad=True)
    w.numpy(force=True)[0] = 5
    assert w.tolist() == [5, 0]
    assert torch.tensor([1 + 2j]).conj().numpy(force=True)[0] == 1 - 2j
    with pytest.raises(TypeError):
        torch.zeros(2, dtype=torch.bfloat16).numpy(force=True)


@pytest.mark.parametrize("convert", [torch.from_numpy, torch.tensor, torch.as_tensor])
@pytest.mark.parametrize(
    "array",
    [np.arange(3.0)[::-1], np.arange(3, dtype=">f4"), np.ones(2, ml_dtypes.bfloat16)],
    ids=["negative strides", "big-endian", "ml_dtypes"],
)
def test_torch_refuses_arrays_that_ours_takes(convert: Callable[[Any], Any], array: np.ndarray[Any, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        convert(array)
    assert ferry.from_numpy(array).tolist() == array.tolist()


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
def test_torch_makes_a_writable_tensor_of_read_only_memory() -> None:
    for convert in (torch.from_numpy, torch.as_tensor, torch.from_dlpack):
        array = _read_only()
        convert(array).add_(1)
        assert array.tolist() == [2, 2]
    array = _read_only()
    ferry.from_numpy(array).add_(1)
    assert array.tolist() == [1, 1]


def test_torch_from_dlpack_of_negative_strides_ends_the_process() -> None:
    finished = run_python("import numpy as np, torch; torch.from_dlpack(np.arange(3.0)[::-1]); print('survived')")
    assert finished.returncode < 0
    assert "survived" not in finished.stdout
    with pytest.raises(ferry.CopyRequiredError, match="negative strides"):
        ferry.from_dlpack(np.arange(3.0)[::-1])


def test_a_producer_of_torch_asserts_where_ours_raises_buffer_error() -> None:
    with pytest.raises(AssertionError):
        torch.zeros(2).__dlpack__(stream=1)
    with pytest.raises(BufferError, match="no stream works on host memory"):
        ferry.to_dlpack(torch.zeros(2)).__dlpack__(stream=1)


def test_a_read_only_array_in_a_compiled_function_needs_memory_of_its_own() -> None:
    t = torch.zeros(3)
    with pytest.raises(AssertionError, match=r"np\.nditer"):
        torch.compile(lambda array: array + 1, backend="eager")(ferry.to_numpy(t))
    assert torch.compile(lambda array: array + 1, backend="eager")(ferry.to_numpy(t, copy=True)).tolist() == [1, 1, 1]


def test_an_array_made_inside_a_compiled_function_needs_memory_of_its_own() -> None:
    program = """
    import torch, tensorferry as ferry
    def share(t):
        return torch.from_numpy(ferry.to_numpy(t) * 2)
    def copied(t):
        return torch.from_numpy(ferry.to_numpy(t, copy=True) * 2)
    try:
        torch.compile(share, backend="eager")(torch.ones(2))
    except AssertionError as error:
        print("np.nditer" in str(error))
    print(torch.compile(copied, backend="eager")(torch.ones(2)).tolist())
    """
    assert run_python(program).stdout.splitlines() == ["True", "[2.0, 2.0]"]
