"""Forked children convert and exit cleanly; an interpreter exits cleanly whatever of ours it still holds."""

from __future__ import annotations

import pytest

from helpers.subprocess import stdout_of


def test_a_forked_child_converts_what_it_inherits_and_what_it_makes():
    printed = stdout_of(
        """
        import os, sys
        import numpy as np, torch
        import tensorferry as ferry
        tensor, array = torch.arange(1 << 16), np.arange(1 << 16)
        view, made = ferry.to_numpy(tensor), ferry.from_numpy(array)
        offer = ferry.to_dlpack(tensor).__dlpack__(max_version=(1, 0))
        ferry.to_numpy(tensor, copy=True), ferry.from_numpy(array[::-1])
        sys.stdout.flush()
        for leave in (sys.exit, os._exit):
            child = os.fork()
            if child == 0:
                right = [
                    view[-1] == 65535, made[-1] == 65535,
                    (ferry.to_numpy(tensor, copy=True) == np.arange(1 << 16)).all(),
                    ferry.to_numpy([torch.ones(3)])[0].tolist() == [1, 1, 1],
                    (ferry.from_numpy(array[::-1]).numpy() == array[::-1]).all(),
                    ferry.to_numpy(tensor.view(256, 256).t(), dtype="float64", order="C")[1, 0] == 1,
                    ferry.from_numpy(view).data_ptr() == view.ctypes.data,
                ]
                leave(0 if all(map(bool, right)) else 1)
            print(os.waitpid(child, 0)[1])
        print(view[-1].item(), made[-1].item())
        """
    )
    assert printed.splitlines() == ["0", "0", "65535 65535"]


def test_a_fork_while_other_threads_convert_leaves_a_child_that_converts():
    printed = stdout_of(
        """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        import numpy as np, torch
        import tensorferry as ferry
        stop, big = threading.Event(), torch.zeros(1 << 20)
        ferry.to_numpy(big, dtype="float64"), ferry.to_numpy(torch.arange(3), copy=True)  # no fork while importing
        def work():
            while not stop.is_set():
                ferry.to_numpy(big, copy=True, dtype="float64")
        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads: t.start()
        codes = []
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0 if ferry.to_numpy(torch.arange(3), copy=True).tolist() == [0, 1, 2] else 1)
            codes.append(os.waitpid(child, 0)[1])
        stop.set()
        for t in threads: t.join()
        print(codes)
        """
    )
    assert printed == "[0, 0, 0, 0, 0]"


def test_a_data_loader_with_workers_takes_our_tensors():
    printed = stdout_of(
        """
        import numpy as np, torch
        import tensorferry as ferry
        class Flipped(torch.utils.data.Dataset):
            frames = np.arange(24, dtype=np.uint8).reshape(4, 6)
            frames.flags.writeable = False
            def __len__(self): return 4
            def __getitem__(self, i): return ferry.from_numpy(self.frames[i, ::-1], dtype="float32")
        batch, = torch.utils.data.DataLoader(Flipped(), batch_size=4, num_workers=1, multiprocessing_context="fork")
        print((ferry.to_numpy(batch) == Flipped.frames[:, ::-1]).all())
        """
    )
    assert printed == "True"


HELD = """
import warnings
warnings.simplefilter("ignore")
import numpy as np, torch
import tensorferry as ferry
tensor = torch.arange(6.0).reshape(2, 3)
array = np.arange(6.0)
parameter = torch.nn.Parameter(torch.ones(3))
held = [
    ferry.to_numpy(tensor), ferry.to_numpy(tensor, copy=True), ferry.to_numpy(tensor, copy="lazy"),
    ferry.to_numpy(torch.ones(3) * 2), ferry.to_numpy(parameter * 2), ferry.to_numpy(tensor.bfloat16()),
    ferry.to_numpy({"a": [tensor]}), ferry.from_numpy(array), ferry.from_numpy(array[::-1]),
    ferry.from_numpy(ferry.to_numpy(tensor)), ferry.to_dlpack(tensor), ferry.to_dlpack(array, writable=True),
    ferry.to_dlpack(tensor).__dlpack__(max_version=(1, 0)), ferry.to_dlpack(array, writable=True).__dlpack__(),
    np.from_dlpack(ferry.to_dlpack(tensor)), torch.from_dlpack(ferry.to_dlpack(array, copy=True)),
    torch.utils.dlpack.to_dlpack(ferry.from_numpy(array)), ferry.from_dlpack(array), memoryview(ferry.to_numpy(tensor)),
    ferry.plan(tensor), ferry.explain(tensor), ferry.writable(tensor),
]
held[-1].__enter__()
"""
MORE = {
    "only globals": "",
    "cycles, modules and errors": """
import builtins, sys
held.append(held); tensor.held = held; parameter.hook = lambda: held
builtins.held = sys.held = torch.held = np.held = held
try: ferry.to_numpy(torch.ones(1, device="meta"))
except ferry.FerryError as error: held.append(error)
""",
    "what converts while it ends": """
import atexit, builtins, threading
atexit.register(lambda: ferry.to_numpy(torch.ones(2), copy=True).sum())
class Late:
    def __init__(self): self.convert, self.tensor = ferry.to_numpy, tensor
    def __del__(self):
        try: self.convert(self.tensor)
        except Exception: pass  # Python may be too far gone to convert; it must not crash
builtins.late = Late()
local = threading.local()
def work(): local.held = ferry.to_numpy(torch.ones(5)); held.append(local.held)
thread = threading.Thread(target=work); thread.start(); thread.join()
""",
}


@pytest.mark.parametrize("more", MORE)
def test_an_interpreter_exits_cleanly_while_it_holds(more):
    assert stdout_of(f"{HELD}\n{MORE[more]}\nprint('end')") == "end"


def test_an_interpreter_without_torch_exits_cleanly():
    printed = stdout_of(
        """
        import sys
        import numpy as np
        import tensorferry as ferry
        held = [ferry.to_numpy(np.arange(3), copy=True), ferry.to_dlpack(np.arange(3)).__dlpack__(max_version=(1, 0))]
        held.append(ferry.to_numpy(bytearray(3)))
        print("torch" in sys.modules, held[0].tolist())
        """
    )
    assert printed == "False [0, 1, 2]"


# Torch's own operations end the process here, so this uses NumPy alone; NumPy's astype does not.
def test_daemon_threads_that_copy_do_not_disturb_the_exit():
    printed = stdout_of(
        """
        import threading, time
        import numpy as np
        import tensorferry as ferry
        array = np.zeros(1 << 18, np.float32)
        def work():
            while True:
                ferry.to_numpy(array, dtype="float64")
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
        print("end")
        """
    )
    assert printed == "end"
