"""The table of public names, from their docstrings."""

from __future__ import annotations

import inspect

from markdown_text import code, table

import tensorferry as ferry
from tensorferry import io, metrics, types

__all__ = ["GUIDES", "api", "public_names", "summary"]

# The guide that each name belongs to; the order is that of the table.
GUIDES: dict[str, tuple[str, ...]] = {
    "four-conversions.md": ("to_numpy", "from_numpy", "to_python", "stack"),
    "inspect-and-check.md": (
        *("plan", "types.Plan", "explain", "types.Explanation", "types.Step"),
        *("describe", "types.Description", "types.NestDescription", "types.Pitch", "check", "shares_memory"),
    ),
    "sharing-and-copying.md": ("writable", "pool_stats", "types.PoolStats", "trim", "options"),
    "pinned-memory.md": (
        *("empty_pinned", "zeros_pinned", "empty_like_pinned", "pinned", "types.Pinned"),
        *("PinnedPool", "types.PinnedPoolStats", "hold"),
    ),
    "devices.md": (
        *("to_numpy_async", "types.Transfer", "types.TransferStats", "types.GraphSlot", "to_device"),
        "types.LinkFigures",
    ),
    "metrics.md": (
        *("MetricLog", "metrics.watch"),
        *("types.MetricStep", "types.MetricStats", "types.Histogram", "types.Watch"),
    ),
    "images.md": ("images_to_tensor", "tensor_to_images"),
    "dlpack.md": ("to_dlpack", "from_dlpack", "types.Producer"),
    "export.md": (
        *("save", "types.SaveReport", "load", "verify", "types.Verification"),
        *("inspect", "types.Inspection", "types.StoredTensor", "types.DTypeSum"),
        *("save_async", "types.SaveHandle", "Writer"),
    ),
    "checkpoints.md": ("io.CheckpointStager", "io.CheckpointWriter", "io.capture"),
    "nests.md": ("register_node",),
}
_ERRORS = "errors.md"


def public_names() -> list[str]:
    """Return every public name, guide by guide; errors and what has no guide of its own come last."""
    guided = [name for names in GUIDES.values() for name in names]
    of_io = [f"io.{name}" for name in io.__all__ if name not in ferry.__all__]
    known = [*ferry.__all__, "metrics.watch", *of_io, *(f"types.{name}" for name in types.__all__)]
    return [*(name for name in guided if name in known), *(name for name in known if name not in guided)]


def value_of(name: str) -> object:
    """Return what a public name stands for; ``types.X``, ``metrics.X`` and ``io.X`` lie in submodules."""
    module, _, plain = name.rpartition(".")
    return getattr({"types": types, "metrics": metrics, "io": io}.get(module, ferry), plain)


def summary(name: str) -> str:
    """Return the first sentence of a name's docstring."""
    documented = inspect.getdoc(value_of(name)) or ""
    paragraph = " ".join(documented.split("\n\n")[0].split())
    return paragraph.split(". ")[0].removesuffix(".").replace("``", "`")


def _guide(name: str) -> str:
    found = [guide for guide, names in GUIDES.items() if name in names]
    return found[0] if found else _ERRORS


def _written(name: str) -> str:
    return name if inspect.isclass(value_of(name)) else f"{name}()"


def api() -> str:
    """One row for each public name."""
    named = [name for name in public_names() if not name.startswith("__")]
    rows = [[f"[{code(_written(name))}]({_guide(name)})", summary(name)] for name in named]
    return table(["name", "what it is for"], rows)
