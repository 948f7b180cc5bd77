"""What importing the package costs and touches."""

import json
import statistics
import subprocess
import sys

import tensorferry as ferry


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_loads_neither_torch_nor_ml_dtypes():
    loaded = json.loads(run("import sys, json, tensorferry; print(json.dumps(sorted(sys.modules)))"))
    assert "tensorferry._core" in loaded
    assert [name for name in loaded if name.split(".")[0] in ("torch", "ml_dtypes", "typer", "rich", "sklearn")] == []


def test_importing_costs_at_most_30_ms_beyond_numpy():
    # Of the processor's time: however many programs share it.
    code = "import time, numpy; start = time.process_time(); import tensorferry; print(time.process_time() - start)"
    seconds = [float(run(code)) for _ in range(5)]
    assert min(seconds) <= 0.030, f"import took {statistics.median(seconds):.3f} s"


def test_arrays_convert_where_torch_is_missing():
    code = """
import sys
sys.modules["torch"] = None
import numpy as np, tensorferry as ferry
a = np.arange(3)
assert ferry.to_numpy({"a": a})["a"] is a
assert ferry.to_python([a]) == [[0, 1, 2]]
try:
    ferry.from_numpy(a)
except ImportError as error:
    print(type(error).__name__, "pip install 'tensorferry[torch]'" in str(error))
"""
    assert run(code) == "MissingDependencyError True"


def test_public_names_are_sorted_and_exist():
    assert ferry.__all__ == sorted(ferry.__all__)
    assert [name for name in ferry.__all__ if not hasattr(ferry, name)] == []


def test_package_is_typed():
    from importlib.resources import files

    assert (files(ferry) / "py.typed").is_file()
    assert "def to_numpy" in (files(ferry) / "_core.pyi").read_text()
