"""What happens to the device path at the end of a process and in its children."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from helpers.subprocess import run_python, stdout_of

BEGIN = """
import gc, os, sys, threading, time
import numpy as np
import tensorferry as ferry
from helpers.device_path import fresh
from helpers.fake_cuda_arrays import DeviceArray, TableArray
fake = fresh()
fake.schedule({schedule!r}, 3)
x = TableArray(np.zeros(4, np.float32))
x.write_later([1, 2, 3, 4])
"""
schedules = pytest.mark.parametrize("schedule", ["lazy", "eager", "shuffled", "threaded"])

EXITS = {
    "transfers that nobody waited for": """
        kept = [ferry.to_numpy_async(x) for _ in range(50)]
    """,
    "transfers with callbacks": """
        kept = [ferry.to_numpy_async(x) for _ in range(5)]
        for transfer in kept:
            transfer.add_done_callback(lambda t: None)
    """,
    "a device that is stuck": """
        ferry.to_numpy_async(x).result()
        fake.library.fake_hold(1)
        kept = [ferry.to_numpy_async(x) for _ in range(50)]
    """,
    "futures that nobody asked": """
        futures = [ferry.to_numpy_async([x]).future() for _ in range(5)]
    """,
    "arrays in pinned memory": """
        kept = [ferry.to_numpy(x), ferry.to_numpy_async(x).result()]
        sys.kept = kept
    """,
    "a thread of the user's that still waits": """
        fake.library.fake_hold(1)
        t = ferry.to_numpy_async(x)
        threading.Thread(target=t.result, daemon=True).start()
        time.sleep(0.05)
    """,
    "no internal thread": """
        with ferry.options(background=False):
            kept = [ferry.to_numpy_async(x) for _ in range(50)]
            print("end")
            sys.exit(0)
    """,
}


def program(body: str, schedule: str = "lazy") -> str:
    return BEGIN.format(schedule=schedule) + textwrap.dedent(body)


@pytest.mark.parametrize("body", EXITS.values(), ids=EXITS)
@pytest.mark.parametrize("schedule", ["lazy", "threaded"])
def test_a_process_ends_quietly_with(body: str, schedule: str):
    ended = run_python(program(body, schedule) + '\nprint("end")')
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "end", "")


@schedules
def test_a_child_is_told_and_its_parent_goes_on(schedule: Any):
    said = stdout_of(
        program(
            """
            kept = ferry.to_numpy(x)
            transfer = ferry.to_numpy_async(x)
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                answers = [kept.tolist() == [1, 2, 3, 4]]
                for call in (lambda: ferry.to_numpy(x), lambda: ferry.to_numpy_async(x), transfer.result):
                    try:
                        call()
                        answers.append("no error")
                    except ferry.DeviceError as error:
                        answers.append("fork" in str(error))
                del kept, transfer
                gc.collect()
                os._exit(0 if answers == [True] * 4 else print(answers, flush=True) or 1)
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), transfer.result().tolist(), ferry.to_numpy(x).tolist())
            print(fake.violations())
            """,
            schedule,
        )
    )
    assert said.splitlines() == ["0 [1.0, 2.0, 3.0, 4.0] [1.0, 2.0, 3.0, 4.0]", "[]"]


def test_a_child_of_a_process_that_used_no_device_may_use_it():
    said = stdout_of(
        """
        import os
        import numpy as np
        import tensorferry as ferry
        ferry.to_numpy(np.ones(3))
        child = os.fork()
        if child == 0:
            from helpers.device_path import fresh
            from helpers.fake_cuda_arrays import TableArray
            fresh()
            ok = ferry.to_numpy(TableArray(np.arange(3))).tolist() == [0, 1, 2]
            os._exit(0 if ok else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert said == "0"


def test_nothing_is_initialised_before_a_device_is_used():
    said = stdout_of(
        """
        import os
        import numpy as np
        from helpers.device_path import prepared
        fake = prepared()
        import tensorferry as ferry
        ferry.to_numpy({"a": np.ones(3)})
        ferry.plan(np.ones(3))
        ferry.describe(np.ones(3))
        print(fake.trace())
        """
    )
    assert said == "[]"


def test_without_a_driver_the_error_says_so():
    said = stdout_of(
        """
        import os
        import numpy as np
        from helpers.fake_cuda import fake_cuda
        from helpers.fake_cuda_arrays import ALL_KINDS
        fake_cuda().reset()
        os.environ["TENSORFERRY_LIBCUDA"] = "/nonexistent/libcuda.so.1"
        import tensorferry as ferry
        for kind in ALL_KINDS.values():
            try:
                ferry.to_numpy(kind(np.ones(3)))
            except ferry.DeviceError as error:
                print("/nonexistent/libcuda.so.1" in str(error))
        """
    )
    assert said.split() == ["True"] * 4
