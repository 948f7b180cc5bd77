"""Promise 7: which calls can block the host on what lies on a device, and for how many events they wait."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorferry as ferry
from helpers.device_path import RING_NBYTES, seen, settle, until
from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_arrays import DeviceArray, InterfaceArray, TableArray

pytestmark = pytest.mark.usefixtures("without_thread")


class Row(NamedTuple):
    """How a call ends, and for how many events it waits: 0 for a call that never blocks."""

    outcome: str
    waits: int


# `t` and `u` tell their stream (exchange table), `f` is a foreign producer with capsules, `c` has the interface only.
CALLS: dict[str, Row] = {
    "ferry.to_numpy(t)": Row("ndarray", 1),
    "ferry.to_numpy([t, u, {'again': t}])": Row("list", 1),
    "ferry.to_numpy([t, elsewhere])": Row("list", 2),  # one on each device
    "ferry.to_numpy(f)": Row("ndarray", 1),
    "ferry.to_numpy(c)": Row("ndarray", 1),
    "ferry.to_numpy(t, copy=False)": Row("CopyRequiredError", 0),
    "ferry.to_numpy(t, dtype='int8')": Row("DTypeError", 0),
    "ferry.to_numpy(t, out=np.zeros(5))": Row("BufferMismatchError", 0),
    "ferry.to_numpy(t, out=np.zeros(3))": Row("ndarray", 1),
    "ferry.to_numpy(empty)": Row("ndarray", 0),
    "ferry.to_numpy_async(t)": Row("Transfer", 0),
    "ferry.to_numpy_async([t, u, elsewhere])": Row("Transfer", 0),
    "ferry.to_numpy_async(t, snapshot=False)": Row("Transfer", 0),
    "ferry.to_numpy_async(f)": Row("Transfer", 1),
    "ferry.to_numpy_async(c)": Row("Transfer", 1),
    "ferry.to_numpy_async(t, pinned=False)": Row("Transfer", 1),
    "ferry.to_python({'loss': t, 'step': u})": Row("dict", 1),
    "ferry.stack([t, u], to='numpy')": Row("ndarray", 1),
    "ferry.check(t, shape=(3,), dtype='floating', device='cuda')": Row("TableArray", 0),
    "ferry.check(t, finite=True)": Row("TableArray", 1),
    "ferry.check(f, shape=(3,))": Row("DeviceArray", 0),
    "ferry.check(c, shape=(3,))": Row("InterfaceArray", 0),
    "ferry.plan(t)": Row("Plan", 0),
    "ferry.plan([t, f, c])": Row("Plan", 0),
    "ferry.plan(t, to='torch')": Row("Plan", 0),
    "ferry.explain(t)": Row("Explanation", 0),
    "ferry.describe(t)": Row("Description", 0),
    "ferry.describe(f)": Row("Description", 0),
    "ferry.describe(c)": Row("Description", 0),
    "ferry.describe([t, f, c])": Row("NestDescription", 0),
    "ferry.shares_memory(t, u)": Row("bool", 0),
    "ferry.shares_memory(f, c)": Row("bool", 0),
    "ferry.writable(t).__enter__()": Row("ArgumentError", 0),
    "ferry.to_dlpack(t)": Row("DeviceError", 0),
    "ferry.from_dlpack(t)": Row("CopyRequiredError", 0),
    "ferry.from_dlpack(t, to='numpy')": Row("CopyRequiredError", 0),
    "ferry.from_dlpack(t, to='numpy', copy=None)": Row("ndarray", 1),
    "ferry.from_dlpack(t, copy=None)": Row("Tensor", 1),
    "ferry.from_numpy(t)": Row("Tensor", 1),
    "ferry.from_numpy(t, copy=False)": Row("CopyRequiredError", 0),
    "ferry.pool_stats()": Row("PoolStats", 0),
    "ferry.trim()": Row("int", 0),
}


def outcome_of(call: str, names: dict[str, Any]) -> str:
    try:
        return type(eval(call, {"ferry": ferry, "np": np, **names})).__name__
    except ferry.FerryError as error:
        return type(error).__name__


@pytest.fixture
def names(fake: FakeCuda) -> dict[str, Any]:
    made = {
        "t": TableArray(np.zeros(3, np.float32)),
        "u": TableArray(np.ones(3, np.float32)),
        "elsewhere": TableArray(np.ones(3), device=1),
        "empty": TableArray(np.zeros(0)),
        "f": DeviceArray(np.zeros(3, np.float32)),
        "c": InterfaceArray(np.zeros(3, np.float32)),
    }
    for name in ("t", "elsewhere"):
        ferry.to_numpy_async(made[name]).result()  # what is made at first use is there
    settle(fake)
    return made


@pytest.mark.parametrize(("call", "row"), CALLS.items(), ids=CALLS)
def test_calls_wait_as_often_as_the_table_says(fake: FakeCuda, names: dict[str, Any], call: str, row: Row):
    outcome_of(call, names)
    settle(fake)
    with seen(fake) as made:
        assert outcome_of(call, names) == row.outcome
    waited = 0 if row.outcome == "Transfer" and row.waits == 0 else made.waits
    assert waited == row.waits
    names.clear()


@pytest.mark.parametrize(("call", "row"), CALLS.items(), ids=CALLS)
def test_calls_that_never_block_return_while_the_device_is_stuck(
    fake: FakeCuda, names: dict[str, Any], call: str, row: Row
):
    outcome_of(call, names)
    settle(fake)
    returned = threading.Event()

    def work() -> None:
        fake.use_device(0)
        outcome_of(call, names)
        returned.set()

    thread = threading.Thread(target=work)
    with fake.held():
        thread.start()
        if row.waits == 0:
            assert returned.wait(20)
        else:
            assert not returned.wait(0.02)
    thread.join(60)
    assert returned.is_set()
    names.clear()


def test_the_ring_waits_for_its_own_pieces_only(fake: FakeCuda):
    x = TableArray(np.ones(2 * RING_NBYTES, np.uint8))
    with seen(fake) as made:
        ferry.to_numpy(x, pinned=False)
    assert made.waits <= len(made.copies("DtoH"))


def test_waiting_spins_for_microseconds_and_then_sleeps(fake: FakeCuda):
    x = TableArray(np.ones(4))
    ferry.to_numpy(x)
    made: list[Any] = []
    fake.clear_trace()
    thread = threading.Thread(target=lambda: made.append(ferry.to_numpy(x)))
    with fake.held():
        thread.start()
        assert until(lambda: fake.call_counts()["cuEventSynchronize"] == 1)
        queries = fake.call_counts()["cuEventQuery"]
    thread.join(60)
    assert made[0].tolist() == [1, 1, 1, 1]
    assert queries < 200
    assert fake.live("blocking_waits") == 1
    assert fake.live("busy_waits") == 0
