"""Memory that is pinned at its first use with a device, the ends of processes, and their children."""

from __future__ import annotations

import textwrap

import pytest

from helpers.subprocess import run_python, stdout_of

BEGIN = """
import gc, os, sys
import numpy as np
from helpers.fake_cuda import fake_cuda
fake = fake_cuda()
os.environ["TENSORFERRY_LIBCUDA"] = fake.path
import tensorferry as ferry
from helpers.fake_cuda_arrays import TableArray
from tensorferry._native import core
fake.reset()
core.set_transfer_limits(kernels=False)

def is_pinned(x):
    return ferry.describe(x).pinned

def on_device(n):
    fake.use_device(0)
    return TableArray(np.arange(n, dtype=np.float32))
"""


LIMIT_NOTE = "not pinned: no more can be pinned: the limit is 1000000 bytes, and the system may allow less"


def program(body: str) -> str:
    return BEGIN + textwrap.dedent(body)


def test_without_a_context_nothing_initialises_the_driver():
    printed = stdout_of(
        program("""
        array = ferry.zeros_pinned((100, 100))
        pool = ferry.PinnedPool(1 << 20, fence="context")
        kept = [ferry.empty_pinned(3), ferry.empty_like_pinned(array), pool.empty(5)]
        print(ferry.describe(array).pinned, ferry.describe(array).note, array.any())
        print(ferry.describe(pool.empty(3)).note)
        ferry.hold(array, 1)
        pool.hold(array, 1)
        try:
            ferry.pinned(np.zeros(3), array)
        except ferry.DeviceError as error:
            print(error)
        print(ferry.pool_stats().pinned, pool.stats.in_use_nbytes, pool.trim())
        print(sorted(set(fake.calls())), fake.violations())
        """)
    )
    assert printed.splitlines() == [
        "False pinned at its first use with a device False",
        "pinned at its first use with a device",
        "pinned() of 40024 bytes: no CUDA device is in use in this process; use a device first, for example "
        "torch.cuda.init(), or take memory from ferry.empty_pinned()",
        "None 0 0",
        "['cuCtxGetCurrent', 'cuDriverGetVersion'] []",
    ]


def test_the_first_copy_from_a_device_pins_it_in_place():
    printed = stdout_of(
        program("""
        array = ferry.zeros_pinned(50_000)
        part = array[100:1100]
        at = array.ctypes.data
        x = on_device(1000)
        print(ferry.plan(x, out=part).path, fake.live("host_registrations"))
        fake.clear_trace()
        ferry.to_numpy(x, out=part)
        print(fake.call_counts()["cuMemHostRegister"], fake.call_counts()["cuMemcpyDtoHAsync"])
        print(is_pinned(array), ferry.describe(array).note == "", array.ctypes.data == at)
        print(array[:100].any(), array[100:1100].tolist() == list(range(1000)), array[1100:].any())
        stats = ferry.pool_stats().pinned
        print(stats.in_use_arrays, stats.in_use_nbytes >= array.nbytes)
        del array, part
        gc.collect()
        stats = ferry.pool_stats().pinned
        print(stats.in_use_arrays, stats.retired_nbytes + stats.idle_nbytes >= 200_000, fake.violations())
        """)
    )
    assert printed.splitlines() == ["dma 0", "1 1", "True True True", "False True False", "1 True", "0 True []"]


def test_an_asynchronous_copy_pins_it_too():
    printed = stdout_of(
        program("""
        array = ferry.empty_pinned(5000)
        x = on_device(5000)
        x.write_later(np.arange(5000) * 2)
        transfer = ferry.to_numpy_async(x, out=array)
        print(transfer.plan.path, is_pinned(array))
        print(transfer.result() is array, array[4999])
        """)
    )
    assert printed.splitlines() == ["dma True", "True 9998.0"]


def test_pinned_pins_it_for_good():
    printed = stdout_of(
        program("""
        array, ordinary = ferry.zeros_pinned(5000), np.zeros(5000)
        fake.use_device(0)
        with ferry.pinned(array, ordinary):
            print(is_pinned(array), is_pinned(ordinary))
        print(is_pinned(array), is_pinned(ordinary), array.any())
        """)
    )
    assert printed.splitlines() == ["True True", "True False False"]


def test_an_array_of_a_pool_is_pinned_by_that_pool_within_its_limit():
    printed = stdout_of(
        program("""
        pool = ferry.PinnedPool(40_960)
        first, second = pool.empty(10_000), pool.empty(10_000)
        x = on_device(10_000)
        print(ferry.plan(x, out=first).path)
        ferry.to_numpy(x, out=first)
        ferry.to_numpy(x, out=second)
        print(is_pinned(first), is_pinned(second), (second == np.arange(10_000)).all())
        print(ferry.describe(second).note)
        print(pool.stats.in_use_nbytes, pool.stats.refusals)
        print(fake.live("pageable_copies"), fake.violations())
        """)
    )
    assert printed.splitlines() == [
        "dma",
        "True False True",
        "not pinned: no more can be pinned: the limit is 40960 bytes, and the system may allow less",
        "40960 1",
        "0 []",
    ]


def test_what_is_refused_then_stays_ordinary():
    printed = stdout_of(
        program("""
        array = ferry.zeros_pinned(5000)
        ferry.options(pinned_nbytes=1_000_000)
        x = on_device(5000)
        fake.fault("cuMemHostRegister", 801)
        ferry.to_numpy(x, out=array)
        print(array.tolist() == list(range(5000)), is_pinned(array), ferry.describe(array).note)
        ferry.to_numpy(x, out=array)
        print(is_pinned(array), fake.live("pageable_copies"))
        with ferry.pinned(array):  # asks once more
            print(is_pinned(array), ferry.describe(array).note == "")
        print(is_pinned(array), fake.violations())
        """)
    )
    assert printed.splitlines() == [
        f"True False {LIMIT_NOTE}",
        "False 0",
        "True True",
        "True []",
    ]


def test_a_child_reads_its_parents_arrays_and_gets_ordinary_ones():
    printed = stdout_of(
        program("""
        fake.use_device(0)
        early = ferry.zeros_pinned(5000)
        pool = ferry.PinnedPool(1 << 20)
        own = pool.empty(5000)
        early[:], own[:] = 3, 4
        mine = np.zeros(5000)
        held = ferry.pinned(mine)
        child = os.fork()
        if child == 0:
            fresh = ferry.zeros_pinned(100)
            more = pool.empty(100)
            more[:] = 1
            print(early.sum(), own.sum(), fresh.any(), is_pinned(fresh), "fork" in ferry.describe(fresh).note)
            for call in (lambda: ferry.pinned(mine), lambda: ferry.hold(early, 1)):
                try:
                    call()
                    print("no error")
                except ferry.DeviceError as error:
                    print("fork" in str(error))
            held.close()
            del early, own, held, pool, more, fresh
            gc.collect()
            print(ferry.trim() >= 0, ferry.pool_stats().pinned)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)
        print(is_pinned(early), is_pinned(own), is_pinned(mine))
        held.close()
        print(is_pinned(mine), fake.violations())
        """)
    )
    assert printed.splitlines() == [
        "15000.0 20000.0 False False True",
        "True",
        "True",
        "True None",
        "True True True",
        "False []",
    ]


def test_a_child_of_a_process_without_devices_may_pin():
    printed = stdout_of(
        program("""
        early = ferry.zeros_pinned(5000)
        child = os.fork()
        if child == 0:
            x = on_device(5000)
            ferry.to_numpy(x, out=early)
            with ferry.pinned(np.zeros(100_000)):
                print(is_pinned(early), early[4999], fake.violations())
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)
        print(is_pinned(early), early[4999])
        """)
    )
    assert printed.splitlines() == ["True 4999.0 []", "False 0.0"]


EXITS = {
    "arrays": "kept = [ferry.zeros_pinned(100), ferry.zeros_pinned(1 << 20)]",
    "arrays that wait for a device": "kept = [early]",
    "a pool": "kept = [ferry.PinnedPool(1 << 20)]; kept.append(kept[0].empty(5000))",
    "pinned arrays": "kept = [ferry.pinned(np.zeros(50_000))]",
    "pinned arrays in flight": """
        memory = np.zeros(4, np.float32)
        kept = [ferry.pinned(memory), ferry.to_numpy_async(on_device(4), out=memory)]
    """,
    "a cycle with a pinned array": """
        class Holder: pass
        h = Holder(); h.me, h.pin = h, ferry.pinned(np.zeros(50_000))
        del h
    """,
}


@pytest.mark.parametrize("body", EXITS.values(), ids=EXITS)
def test_the_interpreter_ends_cleanly_with(body: str):
    finished = run_python(
        program("early = ferry.zeros_pinned(100)\nfake.use_device(0)\n" + textwrap.dedent(body) + "\nprint('end')")
    )
    assert (finished.returncode, finished.stdout.strip(), finished.stderr) == (0, "end", "")
