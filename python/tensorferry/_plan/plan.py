"""What a conversion will do, in figures and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorferry._device.link_figures import LinkFigures

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """What a conversion does, or a nest of conversions together.

    Attributes
    ----------
    path : str
        "same object", "view", "alias", "lazy", "copy", "fallback" (through torch, from another device), or "nest". Of
        tensors on CUDA devices: "dma" or "ring", behind "pack" where the values are packed first; "store", "gather".
    reason : str
        Why this path was taken.
    steps : tuple of str
        What happens, in order.
    nbytes_moved : int
        Bytes written by all copies.
    copies : int
        How many times the values are copied.
    waits : tuple of str
        What the host waits for; empty when it waits for nothing.
    shares_memory : bool
        Does the result share memory with the source? For a nest: do all of them?
    writable : bool
        May the result be written to? For a nest: all of them?
    dtype : str
        Name of the result's dtype; "" for a nest.
    shape : tuple of int
        Shape of the result; () for a nest.
    strides : tuple of int
        Strides of the result in bytes; () for a nest.
    launches : int
        How many kernels of ours are launched on the device. Those that gather a nest's small tensors are the nest's.
    link : LinkFigures or None
        For tensors on CUDA devices: what the path was chosen by, and where that comes from.
    parts : mapping of str to Plan
        For a nest, the plan of each leaf by its place in the nest.
    """

    path: str
    reason: str
    steps: tuple[str, ...]
    nbytes_moved: int
    copies: int
    waits: tuple[str, ...]
    shares_memory: bool
    writable: bool
    dtype: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    launches: int = 0
    link: LinkFigures | None = field(default=None, compare=False)
    parts: Mapping[str, Plan] = field(default_factory=dict)
    _gathered: tuple[str, Plan] | None = field(default=None, repr=False, compare=False)  # its device; with others

    def __str__(self) -> str:
        """One line: the path, what it costs and why."""
        count = "1 copy" if self.copies == 1 else f"{self.copies} copies"
        cost = f"{count}, {self.nbytes_moved:,} bytes moved" if self.copies else "nothing moved"
        waits = f", waits for {' and '.join(self.waits)}" if self.waits else ""
        what = f" {self.dtype} {self.shape}" if self.path != "nest" else f" of {len(self.parts)} leaves"
        return f"{self.path}:{what}, {cost}{waits}: {self.reason}"
