"""The command itself: how it is started, what wrong usage costs, what it says when its packages are missing."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tensorferry
from helpers.console import run_here, run_outside

_COMMANDS = ("doctor", "explain", "export", "inspect", "verify", "demo", "bench")


def test_help_names_every_command_on_stdout_and_exits_0(capsys):
    ran = run_here(capsys, "--help")
    assert ran.code == 0
    assert [name for name in _COMMANDS if name not in ran.stdout] == []
    assert ran.stderr == ""


def test_version_is_the_package_s(capsys):
    ran = run_here(capsys, "--version")
    assert (ran.code, ran.stdout) == (0, f"tensorferry {tensorferry.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        pytest.param(["doctor", "--jason"], "--jason", id="an unknown option"),
        pytest.param(["ferry"], "ferry", id="an unknown command"),
        pytest.param(["explain"], "FILE", id="a missing file name"),
        pytest.param(["explain", "weights.txt"], "weights.txt", id="an unknown suffix"),
        pytest.param(["explain", "weights.npy", "--to", "jax"], "jax", id="an unknown direction"),
        pytest.param(["demo", "trips"], "trips", id="an unknown demo"),
        pytest.param(["demo", "--json", "traps"], "--json", id="an option that would be lost"),
    ],
)
def test_wrong_usage_exits_2_and_says_on_stderr_what_was_wrong(capsys, arguments, named):
    ran = run_here(capsys, *arguments)
    assert (ran.code, ran.stdout) == (2, "")
    assert named.lower() in ran.stderr.lower()


def test_no_command_at_all_exits_2(capsys):
    assert run_here(capsys).code == 2


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_a_missing_package_gives_one_line_in_three_parts_and_exits_1(module):
    ran = run_outside("doctor", without=(module,))
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.count("\n") == 1
    given, _, rest = ran.stderr.removeprefix("tensorferry: ").partition(": ")
    why, _, instead = rest.partition("; ")
    assert given == "the command tensorferry"
    assert f"{module} cannot be imported" in why
    assert instead.strip().endswith("pip install typer rich")


def test_importing_the_command_imports_neither_torch_nor_typer_nor_rich():
    heavy = {"torch", "typer", "rich"}
    program = f"import sys, tensorferry.cli; print({heavy!r} & set(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed == "set()\n"


def test_help_does_not_import_torch():
    program = (
        "import sys, tensorferry.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: print('torch' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stderr == "False\n"


def test_python_m_and_the_console_script_are_the_same_command():
    script = Path(sysconfig.get_path("scripts")) / "tensorferry"
    found = [
        subprocess.run([*start, "--version"], capture_output=True, text=True, check=True).stdout
        for start in ([sys.executable, "-m", "tensorferry"], [str(script)])
    ]
    assert found == [f"tensorferry {tensorferry.__version__}\n"] * 2
