"""TENSORFERRY_DEBUG=poison: what a copy from a device will fill is filled before the copy is enqueued."""

from __future__ import annotations

import pytest

from helpers.subprocess import stdout_of

BEGIN = """
import numpy as np
from helpers.device_path import fresh, settle
fake = fresh()
import tensorferry as ferry
from helpers.fake_cuda_arrays import TableArray
x = TableArray(np.arange(1, 97, dtype=np.uint8).reshape(8, 12))
OUT_OF_MEMORY = 2

def failed(**arguments):
    for call in ("cuMemcpyDtoHAsync", "cuMemcpy2DAsync"):
        fake.fault(call, OUT_OF_MEMORY, 1)  # refused: whatever the memory holds is not the device's
    try:
        ferry.to_numpy(x, **arguments)
    except ferry.DeviceError:
        fake.clear_faults()
        return True

def is_poison(array):
    return (np.ascontiguousarray(array).view(np.uint8) == 0xA5).all()
"""

DESTINATIONS = {
    "pinned": "out = ferry.zeros_pinned((8, 12), 'uint8')",
    "pageable": "out = np.zeros((8, 12), np.uint8)",
    "of another dtype": "out = np.zeros((8, 12), np.float64)",
    "pinned, its rows apart": "whole = ferry.zeros_pinned((8, 20), 'uint8'); out = whole[:, 4:16]",
    "pageable, its elements apart": "whole = np.zeros((8, 40), np.uint8); out = whole[:, 3:39:3]",
}


def printed(program: str, monkeypatch: pytest.MonkeyPatch, setting: str = "poison") -> list[str]:
    monkeypatch.setenv("TENSORFERRY_DEBUG", setting)
    return stdout_of(BEGIN + program).splitlines()


@pytest.mark.parametrize("make", DESTINATIONS.values(), ids=DESTINATIONS)
def test_a_destination_is_filled_and_nothing_beside_it(make: str, monkeypatch: pytest.MonkeyPatch):
    program = f"""
{make}
print(failed(out=out), is_poison(out))
if "whole" in globals():
    out[...] = 0
    print(whole.any())
"""
    assert printed(program, monkeypatch) in (["True True"], ["True True", "False"])
    assert printed(program, monkeypatch, "")[0] == "True False"


def test_a_destination_in_a_nest_and_of_an_asynchronous_copy_is_filled(monkeypatch: pytest.MonkeyPatch):
    program = """
outs = [np.zeros((8, 12), np.uint8), ferry.zeros_pinned((8, 12), "uint8")]
with fake.held():
    transfer = ferry.to_numpy_async([x, x], out=outs)
    print(is_poison(outs[0]), is_poison(outs[1]))
print(all((array == np.arange(1, 97).reshape(8, 12)).all() for array in transfer.result()))
"""
    assert printed(program, monkeypatch) == ["True True", "True"]


@pytest.mark.parametrize("many", [False, True], ids=["one", "a nest"])
def test_new_pinned_memory_is_filled(many: bool, monkeypatch: pytest.MonkeyPatch):
    program = f"""
fresh_memory = ferry.empty_pinned(65536, "uint8")
print(fresh_memory.any())
x = TableArray(np.ones(65536, np.uint8))
x = [x] if {many} else x
try:
    fake.fault("cuMemcpyDtoHAsync", OUT_OF_MEMORY, 1)
    ferry.to_numpy(x)
except ferry.DeviceError:
    fake.clear_faults()
settle(fake)
again = ferry.empty_pinned(65536, "uint8")
print(ferry.pool_stats().pinned.hits, is_poison(again))
"""
    assert printed(program, monkeypatch) == ["False", "1 True"]
    assert printed(program, monkeypatch, "")[1] == "1 False"


def test_the_destination_of_a_graphs_copies_is_filled(monkeypatch: pytest.MonkeyPatch):
    program = """
from helpers.captures import capture
from helpers.fake_cuda_driver import Driver
stream = TableArray.current_stream = Driver().stream()
x, out = TableArray(np.ones(5, np.uint8), stream=stream), ferry.zeros_pinned(5, "uint8")
fake.drain()
with capture(fake, stream) as made:
    ferry.to_numpy_async(x, out=out, stream=stream)
print(is_poison(out))
fake.launch_graph(made.graph, stream)
fake.drain()
print(out.tolist())
fake.destroy_graph(made.graph)
"""
    assert printed(program, monkeypatch) == ["True", "[1, 1, 1, 1, 1]"]
