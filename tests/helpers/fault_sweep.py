"""Every function of the driver that a call uses fails in turn, at its first, middle and last use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tensorferry as ferry
from helpers.device_path import STAGING_NBYTES, allow_abandoned, fresh, leases_in_use, seen, settle
from helpers.fake_cuda import FakeCuda
from tensorferry._native import core

__all__ = ["problems_of_faults"]

_OUT_OF_MEMORY, _UNKNOWN = 2, 999
# When a copy was enqueued and one of these fails, its end cannot be marked. Then nobody can tell when the device is
# done, and what it may touch is kept for good.
_MARKING = ("cuEventRecord", "cuCtxGetCurrent", "cuCtxGetId", "cuCtxPushCurrent")
# What is pushed, although the driver says that it failed, or not popped is beyond us.
_PUSHING = ("cuCtxPushCurrent", "cuCtxPopCurrent")

_LOADING = "cuLibraryLoadData"  # after any error but a shortage the process does without kernels, for good


def problems_of_faults(
    fake: FakeCuda, scenario: Callable[[], bool], *, cold: bool, most_leaves: int, with_kernels: bool = False
) -> list[str]:
    """What is wrong after each fault: neither an error of ours nor the right result, something left, or no next call.

    Parameters
    ----------
    fake : FakeCuda
        Reset before each fault.
    scenario : callable
        Makes a call and says whether its result is right.
    cold : bool
        The call is the first one that uses the device.
    most_leaves : int
        How many pieces of pinned memory one call may have to keep for good.
    with_kernels : bool
        The product may use its kernels.
    """
    problems: list[str] = []
    for name, nth, code, after in _faults(_uses(fake, scenario, cold, with_kernels)):
        _begin(scenario, cold, with_kernels)
        at = f"{name} use {nth} {'after' if after else 'before'} acceptance"
        fake.fault(name, code, nth, after_acceptance=after)
        problems += [f"{at}: {problem}" for problem in _after_fault(fake, scenario, name, most_leaves) if problem]
    fresh()
    allow_abandoned(leases_in_use())
    return problems


def _after_fault(fake: FakeCuda, scenario: Callable[[], bool], name: str, most_leaves: int) -> list[str]:
    leases = leases_in_use()
    found = [_outcome(scenario)]
    fake.clear_faults()
    settle(fake)
    found += fake.violations()
    if name not in _PUSHING:
        found.append(f"{pushed} contexts left" if (pushed := fake.live("pushed_contexts")) else "")
    fake.clear_violations()
    try:
        found.append("" if scenario() else "the next call has wrong values")
    except ferry.FerryError as error:
        found.append(f"the next call fails: {error}")
    settle(fake)
    held = leases_in_use() - leases
    found.append(f"{held} leases are left" if held > (most_leaves if name in _MARKING else 0) else "")
    memory = fake.live("device_bytes") % STAGING_NBYTES
    found.append(f"{memory} device bytes are left" if memory and name not in _MARKING else "")
    fake.drain()  # memory is given back to the device in order, by work of its own
    found.append(f"{fake.live('pending')} pending" if fake.live("pending") else "")
    return found


def _uses(fake: FakeCuda, scenario: Callable[[], bool], cold: bool, with_kernels: bool) -> dict[str, int]:
    """How often each function is called."""
    _begin(scenario, cold, with_kernels)
    with seen(fake) as made:
        assert scenario()
    counts = {name: made.count(name) for name in dict.fromkeys(line.split()[0] for line in made.lines)}
    assert not with_kernels or counts.get("cuLaunchKernel", 0) > 0, counts
    return counts


def _begin(scenario: Callable[[], bool], cold: bool, with_kernels: bool) -> None:
    settle(fresh())
    core.set_transfer_limits(kernels=with_kernels)
    assert not with_kernels or cold or core.kernels_there(0, load=True)
    if not cold:
        assert scenario()


def _faults(counts: dict[str, int]) -> Iterator[tuple[str, int, int, bool]]:
    for name, count in counts.items():
        for nth in sorted({1, (count + 1) // 2, count}):
            yield name, nth, _OUT_OF_MEMORY, False
            if name != _LOADING:
                yield name, nth, _UNKNOWN, True


def _outcome(scenario: Callable[[], bool]) -> str:
    """What a call came to; empty when that is fine."""
    try:
        return "" if scenario() else "wrong values"
    except ferry.FerryError as error:
        return "" if all((error.given, error.why, error.instead)) else f"half an error: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
