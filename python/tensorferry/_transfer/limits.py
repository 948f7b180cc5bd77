"""How much memory transfers may take. The native side keeps the figures, also those set before a device is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from tensorferry._native import core

__all__ = ["change_limits"]

# The names of options() and of the native side.
_NATIVE_NAMES = {"pinned_nbytes": "results_nbytes", "ring_nbytes": "ring_nbytes", "staging_nbytes": "staging_nbytes"}


class Native(Protocol):
    """The functions of the native module that this needs; neither of them touches a device."""

    def set_transfer_limits(
        self, *, results_nbytes: int | None = None, ring_nbytes: int | None = None, staging_nbytes: int | None = None
    ) -> None:
        """Replace what is given; the rest stays."""

    def transfer_limits(self) -> dict[str, int]:
        """Return what holds, by the names above."""


def change_limits(limits: Mapping[str, int]) -> dict[str, int]:
    """Set the limits named as ``options`` names them; return what held before for those.

    Parameters
    ----------
    limits : mapping of str to int
        Bytes, by "pinned_nbytes", "ring_nbytes" and "staging_nbytes".

    Returns
    -------
    dict of str to int
        What held before, for the same names.
    """
    native = cast(Native, core)
    held = native.transfer_limits()
    native.set_transfer_limits(**{_NATIVE_NAMES[name]: nbytes for name, nbytes in limits.items()})
    return {name: held[_NATIVE_NAMES[name]] for name in limits}
