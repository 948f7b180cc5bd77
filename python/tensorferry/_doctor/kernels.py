"""The device kernels: whether they are in this build, for which devices, and what keeps them from running."""

from __future__ import annotations

from dataclasses import dataclass

from tensorferry._native import core

__all__ = ["Kernels", "kernels"]


@dataclass(frozen=True)
class Kernels:
    """The device kernels of this build, as far as they show before a device is used.

    Attributes
    ----------
    source : str
        "embedded" in the native module, the file that ``TENSORFERRY_KERNEL_IMAGE`` names, or "" when there are none.
    architectures : tuple of str
        Compute capabilities that there is machine code for, such as "9.0". It also runs on later minor versions.
    compiled_for : tuple of str
        Those for which there is text that the driver compiles: for these and all newer ones.
    toolkit : str
        The version of the toolkit that built them.
    needs : str
        The driver that takes them, and all newer ones.
    usable : bool
        Does nothing speak against them here?
    reason : str
        Why not; "" when usable.
    """

    source: str
    architectures: tuple[str, ...]
    compiled_for: tuple[str, ...]
    toolkit: str
    needs: str
    usable: bool
    reason: str


def kernels() -> Kernels:
    """Return what is known of the device kernels; initialises no device."""
    facts = core.kernel_facts()
    return Kernels(
        source=facts["source"],
        architectures=_capabilities(facts["architectures"]),
        compiled_for=_capabilities(facts["ptx"]),
        toolkit=facts["toolkit"],
        needs=facts["needs"],
        usable=not facts["obstacle"],
        reason=facts["obstacle"],
    )


def _capabilities(numbers: str) -> tuple[str, ...]:
    return tuple(f"{number[:-1]}.{number[-1]}" for number in numbers.split())
