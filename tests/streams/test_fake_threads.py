"""Several host threads at once on the fake driver, and pinned pages that a fork shares."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helpers.fake_cuda import ALL_SCHEDULES, FakeCuda
from helpers.fake_cuda_arrays import DeviceArray
from helpers.fake_cuda_driver import Driver
from helpers.subprocess import stdout_of

Pin = Callable[[int], np.ndarray]


@pytest.mark.parametrize("kind", ALL_SCHEDULES)
def test_threads_with_streams_of_their_own_do_not_mix(fake: FakeCuda, driver: Driver, pinned: Pin, kind: str):
    hosts = [pinned(4096) for _ in range(4)]

    def round_trips(number: int) -> list[int]:
        fake.use_device(0)
        stream, event = driver.stream(), driver.event(3)
        array, host = DeviceArray(np.zeros(4096, np.uint8), stream=stream), hosts[number]
        seen = []
        for round_ in range(10):
            array.write_later(number * 10 + round_)
            driver("cuMemcpyDtoHAsync", host.ctypes.data, array.pointer, 4096, stream)
            driver("cuEventRecord", event, stream)
            driver("cuEventSynchronize", event)
            seen += sorted(set(host.tolist()))
        return seen

    fake.schedule(kind, 11)
    with ThreadPoolExecutor(4) as pool:
        results = [future.result(timeout=30) for future in [pool.submit(round_trips, i) for i in range(4)]]
    assert results == [list(range(i * 10, i * 10 + 10)) for i in range(4)]


FORKED = """
    import mmap, os
    import numpy as np
    from helpers.fake_cuda import fake_cuda
    from helpers.fake_cuda_driver import Driver
    from helpers.fake_cuda_arrays import DeviceArray
    fake, driver = fake_cuda(), Driver()
    fake.preset("sysmem_old")
    driver.context()
    memory = mmap.mmap(-1, 4096, flags={flags} | mmap.MAP_ANONYMOUS)
    {advice}
    at = np.frombuffer(memory, np.uint8).ctypes.data
    driver("cuMemHostRegister", at, 4096, 3)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    source = DeviceArray(np.ones(8, np.uint8))
    driver("cuMemcpyDtoHAsync", at, source.pointer, 8, 1)
    fake.drain()
    print(fake.violations())
"""


@pytest.mark.parametrize(
    ("flags", "advice", "expected"),
    [
        ("mmap.MAP_PRIVATE", "", "['cuMemcpyDtoHAsync uses host#1, whose pages a fork made copy-on-write']"),
        ("mmap.MAP_PRIVATE", "memory.madvise(mmap.MADV_DONTFORK)", "[]"),
        ("mmap.MAP_SHARED", "", "[]"),
    ],
    ids=["private pages", "pages kept from the child", "shared pages"],
)
def test_pinned_pages_go_stale_when_a_fork_shares_them(flags: str, advice: str, expected: str):
    assert stdout_of(FORKED.format(flags=flags, advice=advice)) == expected
