"""Files of processes that died are removed by the next save to the same path; those of living ones are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorferry as ferry
from helpers.faulty_system import names_of, temporary_files
from helpers.saved_trees import FORMATS
from tensorferry._io.atomic import remove_stale
from tensorferry._io.save import save
from tensorferry._io.system import REAL, System

PROGRAM = """
import sys, time
import numpy as np
from tensorferry._io.save import save
def slowly():
    yield "a", np.zeros(1 << 17)
    print("begun", flush=True)
    time.sleep(60)
save(slowly(), sys.argv[1])
"""


@pytest.mark.parametrize("end", FORMATS.values(), ids=FORMATS)
def test_a_living_process_keeps_its_files_and_a_dead_one_does_not(tmp_path: Path, end: str) -> None:
    path = f"{tmp_path}/x{end}"
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, path], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        assert len(temporary_files(tmp_path)) == 1
        ferry.save({"x": np.ones(3)}, path)
        assert len(temporary_files(tmp_path)) == 1
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(temporary_files(tmp_path)) == 1
    ferry.save({"y": np.ones(3)}, path, overwrite=True)
    assert names_of(tmp_path) == [f"x{end}".rstrip("/")]
    assert list(ferry.load(path)) == ["y"]


def test_names_that_only_look_alike_are_left_alone(tmp_path: Path) -> None:
    others = [".x.npz-12-abc.ferry-tmp", ".y.npz-12-0123456789ab.ferry-tmp", "x.npz-12-0123456789ab.ferry-tmp"]
    for name in others:
        (tmp_path / name).write_text("mine")
    stale = tmp_path / ".x.npz-12-0123456789ab.ferry-tmp"
    stale.write_text("left behind")
    target = tmp_path / "precious"
    target.write_text("data")
    (tmp_path / ".x.npz-13-0123456789ab.ferry-tmp").symlink_to(target)
    ferry.save({"x": np.ones(3)}, tmp_path / "x.npz")
    assert set(others) <= set(names_of(tmp_path))
    assert not stale.exists()
    assert target.read_text() == "data"


def test_a_fork_while_saving_does_not_hold_the_name(tmp_path: Path) -> None:
    def forking() -> object:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0) == (pid, 0)
        yield "x", np.ones(3)

    ferry.save(forking(), tmp_path / "x.npz")
    assert names_of(tmp_path) == ["x.npz"]


@pytest.mark.parametrize("end", ["x.npz", "x/"], ids=["file", "folder"])
def test_a_file_that_is_taken_for_abandoned_before_it_is_locked_is_made_again(tmp_path: Path, end: str) -> None:
    class Late(System):
        taken: list[str] | None = None

        def lock(self, fd: int) -> bool | None:
            if self.taken is None:
                self.taken = remove_stale(REAL, f"{tmp_path}/{end}".rstrip("/"))
            return super().lock(fd)

    system = Late()
    save({"x": np.ones(3)}, f"{tmp_path}/{end}", system=system)
    assert len(system.taken or ()) == 1
    assert names_of(tmp_path) == [end.rstrip("/")]
    assert ferry.load(f"{tmp_path}/{end}")["x"].sum() == 3


def test_nobody_can_take_up_a_file_while_it_is_removed(tmp_path: Path) -> None:
    stale = tmp_path / ".x.npz-12-0123456789ab.ferry-tmp"
    stale.write_text("left behind")
    locked = []

    class Watched(System):
        def unlink(self, path: str) -> None:
            fd = os.open(path, os.O_RDONLY)
            locked.append(REAL.lock(fd))
            os.close(fd)
            super().unlink(path)

    assert remove_stale(Watched(), f"{tmp_path}/x.npz") == [str(stale)]
    assert locked == [False]
    assert names_of(tmp_path) == []
