"""Every case that ships: well formed, true to its goals, with right values from all of its candidates."""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from tensorferry.bench import ALONE, BEST_PEER, LIMIT, cases
from tensorferry.bench._declare import Candidate, Case, Inputs, Point
from tensorferry.bench._limits import LIMITS

MIB = 1 << 20
STEMS = sorted(module.name for module in pkgutil.iter_modules(cases.__path__) if not module.name.startswith("_"))
MODULES = {stem: importlib.import_module(f"tensorferry.bench.cases.{stem}") for stem in STEMS}


def declared(stem: str) -> tuple[Case, ...]:
    """The file's cases, also those that wait for a function of ours."""
    module = MODULES[stem]
    return module.CASES or module._CASES


CASES = {case.name: case for stem in STEMS for case in declared(stem)}
HERE = [case for case in CASES.values() if "cpu" in case.devices]  # tests/torch_cuda has the others
SETTINGS = [(case, point) for case in HERE for point in case.points_for(quick=True)]
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_quick_point = pytest.mark.parametrize(
    ("case", "point"), SETTINGS, ids=[" ".join(map(str, (case.name, *point.values()))) for case, point in SETTINGS]
)

IMPORT_TIME = "import_time.package"


def inputs_of(case: Case, point: Point, seed: int = 0) -> Inputs:
    return case.setup(np.random.default_rng(seed), **point)


def arrays_of(value: Any) -> Iterator[np.ndarray]:
    """Every array and tensor in a value, as arrays; dtypes that NumPy lacks by their exact float32 values."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        wide = value if hasattr(np, str(value.dtype).removeprefix("torch.")) else value.float()
        yield wide.numpy()
    elif isinstance(value, np.ndarray):
        yield value if value.dtype.isbuiltin != 2 else value.astype(np.float32)
    elif isinstance(value, dict):
        for child in value.values():
            yield from arrays_of(child)
    elif isinstance(value, (list, tuple)):
        for child in value:
            yield from arrays_of(child)


def run(candidate: Candidate, inputs: Inputs) -> Any:
    if callable(candidate.code):
        return candidate.code(inputs)
    return eval(candidate.code, dict(inputs))


def can_run(candidate: Candidate) -> bool:
    missing = (
        candidate.form == "ours" and "images_to_tensor" in candidate.label and not hasattr(ferry, "images_to_tensor")
    )
    return not missing and all(importlib.util.find_spec(name.partition(".")[0]) for name in candidate.needs)


@pytest.mark.parametrize("stem", STEMS)
def test_a_case_is_named_after_its_file(stem):
    names = [case.name for case in declared(stem)]
    assert names
    assert len(set(names)) == len(names)
    assert {name.split(".")[0] for name in names} == {stem}
    assert all(name.split(".")[1].isidentifier() for name in names)


@pytest.mark.parametrize("stem", STEMS)
def test_cases_are_collected_unless_they_wait_for_a_function_of_ours(stem):
    waits = stem == "image" and not hasattr(ferry, "images_to_tensor")
    assert bool(MODULES[stem].CASES) != waits


@every_case
def test_ours_comes_first_and_has_a_peer_at_its_best(case):
    forms = [candidate.form for candidate in case.candidates]
    assert forms[0] == "ours"
    assert forms.count("ours") == 1
    assert "best" in forms[1:]
    labels = [candidate.label for candidate in case.candidates]
    assert len(set(labels)) == len(labels)
    assert all(label not in (BEST_PEER, LIMIT) for label in labels)


@every_case
def test_a_goal_is_about_something_that_is_measured_and_holds_somewhere(case):
    labels = {candidate.label for candidate in case.candidates[1:]} | {BEST_PEER} | ({LIMIT} if case.limit else set())
    for goal in case.goals:
        assert goal.against in labels
        assert any(goal.where is None or goal.where(point) for point in case.points), goal.text


@every_case
def test_a_limit_is_one_of_ours_and_has_bytes_to_move(case):
    if case.limit is None:
        assert all(goal.against != LIMIT for goal in case.goals)
    else:
        assert case.limit in LIMITS
        assert case.nbytes is not None


@every_case
def test_settings_differ_and_can_be_written_to_a_file(case):
    assert len({tuple(point.items()) for point in case.points}) == len(case.points)
    for point in (*case.points, *case.quick):
        assert all(type(value) in (int, float, str) for value in point.values())
        assert isinstance(point.get("nbytes", 0), int)
        assert set(point) <= {
            "nbytes",
            "layout",
            "shape",
            "strides",
            "dtype",
            "rows",
            "columns",
            "count",
            "height",
            "width",
            "percent",
            "blocks",
        }


@every_case
def test_quick_settings_are_small(case):
    for point in case.points_for(quick=True):
        assert point.get("nbytes", 0) <= (4 if "cpu" in case.devices else 64) * MIB
        assert point.get("height", 0) * point.get("width", 0) * point.get("count", 1) <= 4 * MIB


@every_quick_point
def test_inputs_vary_and_are_made_from_the_generator(case, point):
    inputs = inputs_of(case, point)
    sources = {name: value for name, value in inputs.items() if name not in (*case.destinations, "mean", "std")}
    arrays = [a for name, value in sources.items() if not name.startswith(("mean_", "std_")) for a in arrays_of(value)]
    if case.name == IMPORT_TIME:
        assert arrays == []
        return
    assert arrays
    assert all(a.min() < a.max() for a in arrays if a.size > 1 and a.dtype.kind not in "cb")
    assert all(np.unique(a.ravel()[:1000]).size > 1 for a in arrays if a.size > 1)
    again, other = (next(arrays_of(inputs_of(case, point, seed))) for seed in (0, 1))
    assert np.array_equal(next(arrays_of(inputs)), again)
    assert not np.array_equal(next(arrays_of(inputs)), other)


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning")
@every_quick_point
def test_every_candidate_gives_what_is_expected(case, point):
    inputs = inputs_of(case, point)
    expected = case.expected(inputs)
    ran = [candidate for candidate in case.candidates if can_run(candidate)]
    assert any(candidate.form == "best" for candidate in ran)
    for candidate in ran:
        if case.destinations:
            inputs["out"].view(np.uint8)[...] = 0xA5  # the others lie over the same memory
        if case.before is not None:
            case.before(inputs)
        result = run(candidate, inputs)
        if case.check is not None:
            case.check(result, expected)
        elif isinstance(expected, (bool, int)):
            assert result is expected or result == expected
        else:
            assert_equal(result, expected, candidate.label)


def assert_equal(result: Any, expected: Any, label: str) -> None:
    found, wanted = list(arrays_of(result)), list(arrays_of(expected))
    assert len(found) == len(wanted), label
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=label, strict=True)
    if isinstance(expected, dict) and not wanted:
        assert result == expected, label


def distinct_bytes(x: np.ndarray) -> int:
    """Bytes of memory that an array reaches, by the address of each element."""
    addresses = np.zeros((1,) * x.ndim, np.int64)
    for axis, (extent, step) in enumerate(zip(x.shape, x.strides, strict=True)):
        addresses = addresses + (np.arange(extent) * step).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return np.unique(addresses).size * x.itemsize


@every_quick_point
def test_bytes_moved_are_those_of_the_source_and_of_the_result(case, point):
    if case.nbytes is None:
        assert case.limit is None
        return
    inputs = inputs_of(case, point)
    name = next(name for name in ("t", "x", "a", "arrays", "tensors", "images", "image") if name in inputs)
    sources = inputs[name] if isinstance(inputs[name], list) else [inputs[name]]
    read = sum(distinct_bytes(as_bits(source)) for source in sources)
    expected = case.expected(inputs)
    written = 0 if isinstance(expected, bool) else expected.nbytes
    assert case.nbytes(inputs) == read + written
    shown = sum(source.nbytes for source in sources)
    if point.get("layout") == "every other row of 7":
        assert 0 <= point["nbytes"] - shown < 7 * sources[0].itemsize  # what makes no whole row is left out
    else:
        assert point.get("nbytes", read) in (read, shown)


def as_bits(source: Any) -> np.ndarray:
    if not isinstance(source, torch.Tensor):
        return source
    bits = {1: torch.uint8, 2: torch.int16}.get(source.element_size())
    return source.numpy() if bits is None else source.view(bits).numpy()


GOALS = [
    ("a view of a tensor", "view.tensor", "t.numpy()", 0.45),
    ("a view of a parameter", "view.parameter", "p.detach().numpy()", 0.45),
    ("a tensor over an array", "view.array", "torch.from_numpy(a)", 0.7),
    ("a nest of 1,000 tensors", "nest.tensors", "[t.detach().numpy() for t in nest]", 0.3),
    ("a private copy against torch", "copy.private", "t.clone().numpy()", 1 / 3),
    ("a private copy against the limit", "copy.private", LIMIT, 1 / 0.8),
    ("a transpose against torch", "transpose.out", "out_tensor.copy_(x)", 1 / 4),
    ("a transpose against NumPy", "transpose.out", "(np.copyto(out, a), out)[1]", 1 / 8),
    ("a transpose against the limit", "transpose.out", LIMIT, 1 / 0.5),
    ("a private transpose against torch", "transpose.matrix", "x.contiguous().numpy()", 1 / 4),
    ("a private transpose against NumPy", "transpose.matrix", "np.ascontiguousarray(x.numpy())", 1 / 8),
    ("a permutation", "transpose.permute", BEST_PEER, 1 / 1.5),
    ("a permutation, never slower", "transpose.permute", BEST_PEER, 1.0),
    ("a slice or a broadcast", "copy.sweep", BEST_PEER, 1 / 1.5),
    ("any size and layout, never slower", "copy.sweep", BEST_PEER, 1.0),
    ("negative strides", "copy.reversed", BEST_PEER, 1 / 1.5),
    ("a cast to an array", "cast.to_numpy", BEST_PEER, 1 / 1.5),
    ("a cast to an array, never slower", "cast.to_numpy", BEST_PEER, 1.0),
    ("a cast of float16 against NumPy", "cast.to_numpy", "a.astype(dtype)", 1 / 4),
    ("a cast to a tensor", "cast.from_numpy", BEST_PEER, 1 / 1.5),
    ("an image against the recipe", "image.one", "cvtColor(image) / 255, astype, permute, contiguous", 1 / 8),
    ("an image against OpenCV", "image.one", "cv2.dnn.blobFromImage(image, 1 / 255, swapRB=True)", 1 / 2),
    ("an image against the limit", "image.one", LIMIT, 1 / 0.6),
    ("a stack of 256 arrays", "stack.arrays", "torch.from_numpy(np.stack(arrays))", 1 / 1.5),
    ("a check for finite values", "check.finite", "bool(torch.isfinite(t).all())", 1 / 3),
    ("a file of tensors against torch", "export.safetensors", "torch.save(state, path)", 1 / 3),
    ("a file of tensors against safetensors", "export.safetensors", "safetensors.torch.save_file(state, path)", 1 / 2),
    ("a folder of arrays against the limit", "export.npy_folder", "os.write, one file", 1 / 0.9),
    ("a durable file against the limit", "export.safetensors_durable", "os.write, one file, fsync", 1 / 0.9),
    ("importing the package", "import_time.package", "a sleep of 30 ms", 1.0),
    ("a device's tensor into pinned memory", "d2h.pinned", LIMIT, 1 / 0.99),
    ("a large tensor of a device", "d2h.array", "t.cpu().numpy()", 1 / 3),
    ("a small tensor of a device", "d2h.array", "t.cpu().numpy()", 0.7),
    ("a strided tensor of a device", "d2h.layout", "ferry.to_numpy(packed)", 1 / 0.97),
    ("a cast on the device", "d2h.cast", "ferry.to_numpy(t)", 0.52),
    ("pieces of a device", "gather.pieces", "ferry.to_numpy(t), one contiguous tensor of as many bytes", 1 / 0.9),
    ("scalars against .item()", "gather.scalars", "[x.item() for x in tensors]", 0.02),
    ("scalars against one", "gather.scalars", "ferry.to_python(one)", 1.5),
    ("images sent to a device", "image.to_device", LIMIT, 1 / 0.93),
    ("a loop beside the copy engine", "interference.copy_engine", ALONE, 1.02),
    ("a loop beside a kernel", "interference.kernel", ALONE, 1.05),
]


@pytest.mark.parametrize(("name", "against", "ratio"), [row[1:] for row in GOALS], ids=[row[0] for row in GOALS])
def test_a_stated_goal_has_a_case(name, against, ratio):
    assert (against, ratio) in [(goal.against, goal.ratio) for goal in CASES[name].goals]


def test_goals_hold_where_they_are_stated():
    transpose = CASES["transpose.out"].goals[0]
    assert transpose.where({"nbytes": MIB, "dtype": "float32"})
    assert not transpose.where({"nbytes": MIB - 4, "dtype": "float32"})
    assert not transpose.where({"nbytes": MIB, "dtype": "complex128"})
    private = CASES["copy.private"].goals[0]
    assert private.where({"nbytes": 64 * MIB})
    assert not private.where({"nbytes": 63 * MIB})


def test_the_sweep_goes_from_1_kib_to_256_mib_for_every_kind_of_layout():
    points = CASES["copy.sweep"].points
    assert min(point["nbytes"] for point in points) == 1 << 10
    assert max(point["nbytes"] for point in points) == 256 * MIB
    assert len({point["layout"] for point in points}) == 11


def test_a_failed_import_in_a_child_is_a_wrong_value(capfd):
    case = CASES[IMPORT_TIME]
    forks = inputs_of(case, {})["forks"]
    assert forks.run("import no_such_module_anywhere") == 1
    assert forks.run("pass") == case.expected({})
    assert "no_such_module_anywhere" in capfd.readouterr().err
