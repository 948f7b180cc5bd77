"""Field cases: a capsule is consumed once, and its deleter runs exactly once, whatever happens."""

from __future__ import annotations

import sys
import weakref

import numpy as np
import pytest
import torch
from torch.utils.dlpack import to_dlpack as torch_to_dlpack

import tensorferry as ferry
from helpers.counting_capsules import CPU, CUDA, CountingCapsule, Producer, deleter_and_tensor
from helpers.foreign_threads import call_in_foreign_thread, call_without_gil
from helpers.memory import address, resident_nbytes
from helpers.subprocess import stdout_of

both_forms = pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "old form"])
CONSUMERS = {
    "to_numpy": ferry.to_numpy,
    "to_numpy, copy": lambda x: ferry.to_numpy(x, copy=True),
    "from_numpy": ferry.from_numpy,
    "from_dlpack to torch": lambda x: ferry.from_dlpack(x, copy=None),
    "from_dlpack to numpy": lambda x: ferry.from_dlpack(x, to="numpy"),
    "nest": lambda x: ferry.to_numpy([x, x])[1],
}
consumers = pytest.mark.parametrize("consumer", CONSUMERS)


# A producer without elements gives a null pointer, and its deleter was never called.
@both_forms
@consumers
@pytest.mark.parametrize(
    ("shape", "data"),
    [((3,), None), ((2, 2), None), ((), None), ((0,), None), ((0,), 0), ((2, 0), 0)],
    ids=["vector", "matrix", "scalar", "empty", "empty and null", "empty matrix and null"],
)
def test_f057_the_deleter_runs_once_when_the_last_user_is_gone(consumer, versioned, shape, data):
    made = CountingCapsule(shape, versioned=versioned, data=data)
    taken = CONSUMERS[consumer](Producer(made))
    assert tuple(taken.shape) == shape
    assert float(taken.sum()) == 0
    alias = taken.reshape(-1)
    del taken
    copied = consumer == "to_numpy, copy"
    if 0 not in shape:
        assert made.deletions == int(copied)
    del alias
    assert made.deletions == 1


REFUSED = {
    "CUDA memory": {"device": CUDA},
    "unknown device": {"device": 99},
    "no such dtype": {"code": 17, "bits": 32},
    "odd width": {"code": 0, "bits": 24},
    "65 axes": {"shape": (1,) * 65},
    "null memory with elements": {"data": 0},
    "more elements than 64 bits count": {"shape": (1 << 40, 1 << 40)},
    "bits packed below a byte": {"code": 1, "bits": 4},
}


@both_forms
@pytest.mark.parametrize("reason", REFUSED)
@pytest.mark.parametrize("consumer", ["to_numpy", "from_numpy", "from_dlpack to torch", "from_dlpack to numpy"])
def test_f057_the_deleter_runs_once_when_the_tensor_is_refused(consumer, versioned, reason):
    made = CountingCapsule(**{"shape": (3,), **REFUSED[reason]}, versioned=versioned)
    with pytest.raises(ferry.FerryError):
        CONSUMERS[consumer](Producer(made, CPU))
    assert made.deletions == 1


@pytest.mark.parametrize("major", [2, 9])
def test_f057_a_tensor_of_a_newer_major_version_is_only_deleted(major):
    made = CountingCapsule(major=major, data=0x10)
    with pytest.raises(ferry.LayoutError, match="newer major version"):
        ferry.to_numpy(Producer(made))
    assert made.deletions == 1


@both_forms
@consumers
def test_f057_a_capsule_that_nobody_asked_for_stays_its_producers(consumer, versioned):
    made = CountingCapsule(versioned=versioned)
    with pytest.raises(ferry.DeviceError):
        CONSUMERS[consumer](Producer(made, CUDA))  # refused before __dlpack__ is called
    assert made.deletions == 0
    del made.capsule
    assert made.deletions == 1


@both_forms
@pytest.mark.parametrize("failing", ["copy=False", "casting", "out"])
def test_f057_the_deleter_runs_once_when_the_conversion_fails_half_way(failing, versioned):
    made = CountingCapsule((2, 3), versioned=versioned)
    arguments = {
        "copy=False": {"copy": False, "dtype": "float64"},
        "casting": {"dtype": "int8", "casting": "safe"},
        "out": {"out": np.zeros((3, 2), np.float32)},
    }[failing]
    with pytest.raises(ferry.FerryError):
        ferry.to_numpy(Producer(made), **arguments)
    assert made.deletions == 1


def _exports(x: object) -> dict[str, object]:
    return {
        "versioned": lambda: ferry.to_dlpack(x, writable=True).__dlpack__(max_version=(1, 0)),
        "old form": lambda: ferry.to_dlpack(x, writable=True).__dlpack__(),
        "through torch": lambda: torch_to_dlpack(ferry.from_numpy(x)),
        "through torch, strided": lambda: torch_to_dlpack(ferry.from_numpy(x[::2])),
    }


# Libraries let go of tensors on threads of their own, without Python's lock, and after Python has gone.
@pytest.mark.parametrize("call", [call_in_foreign_thread, call_without_gil], ids=["foreign thread", "without the GIL"])
@pytest.mark.parametrize("form", ["versioned", "old form", "through torch", "through torch, strided"])
def test_f059_deleters_may_run_anywhere(form, call):
    array = np.arange(6.0)
    alive, before = weakref.ref(array), sys.getrefcount(array)
    for _ in range(50):
        deleter, managed = deleter_and_tensor(_exports(array)[form]())
        assert sys.getrefcount(array) > before
        call(deleter, managed)
        assert sys.getrefcount(array) == before
    deleter, managed = deleter_and_tensor(_exports(array)[form]())
    del array
    assert alive() is not None
    call(deleter, managed)
    assert alive() is None


@pytest.mark.parametrize("form", ["versioned", "old form"])
def test_f059_a_tensor_offered_by_us_is_let_go_in_a_foreign_thread(form):
    tensor = torch.arange(3.0)
    alive = weakref.ref(tensor)
    deleter, managed = deleter_and_tensor(_exports(tensor)[form]())
    view = ferry.to_numpy(tensor)
    del tensor
    assert alive() is None
    call_in_foreign_thread(deleter, managed)
    np.testing.assert_array_equal(view, [0, 1, 2])


def test_f059_deleters_that_run_after_the_interpreter_is_gone_do_nothing():
    printed = stdout_of(
        """
        import numpy as np, torch
        from torch.utils.dlpack import to_dlpack
        import tensorferry as ferry
        from helpers.counting_capsules import deleter_and_tensor
        from helpers.foreign_threads import call_after_python
        array, tensor = np.arange(3.0), torch.arange(3.0)
        offers = [
            ferry.to_dlpack(array, writable=True).__dlpack__(),
            ferry.to_dlpack(tensor).__dlpack__(max_version=(1, 0)),
            to_dlpack(ferry.from_numpy(array)),
            to_dlpack(ferry.from_numpy(array[::2])),
        ]
        for offer in offers:
            call_after_python(*deleter_and_tensor(offer))
        print("done")
        """
    )
    assert printed == "done"


# Capsules that are made and dropped, or lost to an exception on the way, must not cost anything.
@pytest.mark.parametrize("form", ["versioned", "old form", "producer only"])
def test_f060_dropped_offers_give_everything_back(form):
    tensor, array = torch.ones(1000), np.ones(1000)
    makes = {**_exports(array), "producer only": lambda: ferry.to_dlpack(array)}

    def drop(count: int) -> None:
        for _ in range(count):
            makes[form]()
            ferry.to_dlpack(tensor).__dlpack__(max_version=(1, 0))

    drop(1_000)
    references, resident = (sys.getrefcount(array), sys.getrefcount(tensor)), resident_nbytes()
    drop(10_000)
    assert (sys.getrefcount(array), sys.getrefcount(tensor)) == references
    assert resident_nbytes() - resident < 1 << 20


def test_f060_an_exception_between_offer_and_consumption_gives_everything_back():
    array = np.ones(10)
    before = sys.getrefcount(array)

    class Failing:
        def __dlpack_device__(self):
            return (CPU, 0)

        def __dlpack__(self, **arguments):
            offered = ferry.to_dlpack(array).__dlpack__(max_version=(1, 0))
            raise BufferError(f"changed my mind about {type(offered).__name__}")

    for _ in range(100):
        with pytest.raises(ferry.FerryError, match="changed my mind"):
            ferry.to_numpy(Failing())
    assert sys.getrefcount(array) == before


# The second consumption of one capsule was a segmentation fault.
@both_forms
def test_f061_a_capsule_is_consumed_once(versioned):
    made = CountingCapsule(versioned=versioned)

    class Twice:
        def __dlpack_device__(self):
            return (CPU, 0)

        def __dlpack__(self, **arguments):
            return made.capsule

    first = ferry.to_numpy(Twice())
    for consume in (ferry.to_numpy, ferry.from_numpy, ferry.from_dlpack):
        with pytest.raises(ferry.LayoutError, match="consumed before"):
            consume(Twice())
    np.testing.assert_array_equal(first, [0, 0, 0])
    assert made.deletions == 0
    del first
    assert made.deletions == 1
    del made.capsule
    assert made.deletions == 1


def test_f061_one_offer_serves_many_consumers_each_with_its_own_capsule():
    array = np.arange(3.0)
    offer = ferry.to_dlpack(array)
    assert {address(np.from_dlpack(offer)) for _ in range(5)} == {address(array)}


@pytest.mark.parametrize("given", [object(), None, 3], ids=["object", "nothing", "number"])
def test_f061_something_that_is_no_capsule_is_refused_by_name(given):
    class Confused:
        def __dlpack_device__(self):
            return (CPU, 0)

        def __dlpack__(self, **arguments):
            return given

    with pytest.raises(ferry.LayoutError, match="capsule"):
        ferry.to_numpy(Confused())
