"""What is known about the pages under a tensor."""

from __future__ import annotations

import dataclasses

from tensorferry._inspect.description import Description
from tensorferry._native import core

__all__ = ["with_pinned_facts"]


def with_pinned_facts(seen: Description) -> Description:
    """Return the description that also says whether, and why not, memory that was to be pinned is. Starts no device."""
    if seen.pinned or seen.device != "cpu" or seen.addresses is None:
        return seen
    low, high = seen.addresses
    pinned, later, obstacle = core.pinned_facts(low, high - low)
    note = "pinned at its first use with a device" if later else f"not pinned: {obstacle}" if obstacle else ""
    if not (pinned or note):
        return seen
    return dataclasses.replace(seen, pinned=pinned, note="; ".join(part for part in (seen.note, note) if part))
