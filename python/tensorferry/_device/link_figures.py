"""How fast a link is, and up to which sizes each way of copying pays."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LinkFigures"]


@dataclass(frozen=True)
class LinkFigures:
    """The figures that paths over the link between a device and the host are chosen by.

    Attributes
    ----------
    source : str
        Where they come from: "default" (nothing is known of the link), "link" (its speed and width, as the system
        tells them), or "calibrated on" and the date.
    to_host_nbytes_per_s : float
        Bytes per second to the host.
    stores_when_waiting_nbytes : int
        Up to here a kernel stores what it packs or casts straight into host memory, when the call waits.
    stores_when_not_nbytes : int
        The same when the call does not wait.
    stores_of_blocks_nbytes : int
        The same for blocks, which need no kernel.
    rows_from_nbytes : int
        Rows of this width and more are copied as they are.
    gathers_below_nbytes : int
        Below this mean size the tensors of a nest are gathered.
    """

    source: str
    to_host_nbytes_per_s: float
    stores_when_waiting_nbytes: int
    stores_when_not_nbytes: int
    stores_of_blocks_nbytes: int
    rows_from_nbytes: int
    gathers_below_nbytes: int

    @property
    def together(self) -> str:
        """All of them in one line."""
        return (
            f"{self.source}: {self.to_host_nbytes_per_s / 1e9:.1f} GB/s to the host; stores up to "
            f"{self.stores_when_waiting_nbytes:,} bytes when waiting, {self.stores_when_not_nbytes:,} when not, "
            f"{self.stores_of_blocks_nbytes:,} of blocks; rows from {self.rows_from_nbytes:,} bytes; gathers below "
            f"{self.gathers_below_nbytes:,}"
        )
