"""How the fake driver is opened: symbols by version number, and drivers of different age."""

from __future__ import annotations

import ctypes

import pytest

from helpers.fake_cuda import FakeCuda
from helpers.fake_cuda_build import fake_cuda_old_library
from helpers.fake_cuda_driver import SIGNATURES, Driver

INVALID_VALUE, NOT_FOUND, UNKNOWN = 1, 500, 999
FOUND, NO_SYMBOL, VERSION_TOO_SMALL = 0, 1, 2
PRESETS = {"driver_525": 12000, "driver_535": 12020, "driver_550": 12040, "driver_570": 12080, "driver_580": 13000}


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_every_function_is_found_by_its_pinned_version(fake: FakeCuda, name: str):
    code, address, status = Driver().find(name, SIGNATURES[name][0])
    assert (code, address is not None, status) == (0, True, FOUND)


def test_an_older_number_gives_null_with_success(fake: FakeCuda):
    assert Driver().find("cuCtxGetId", 11080) == (0, None, VERSION_TOO_SMALL)
    assert Driver().find("cuNoSuchThing", 12000) == (0, None, NO_SYMBOL)


def test_a_newer_number_gives_another_function_under_the_same_name(fake: FakeCuda, driver: Driver):
    right, wrong = driver.find("cuStreamGetCtx", 9020)[1], driver.find("cuStreamGetCtx", 13000)[1]
    assert right != wrong
    assert ctypes.CFUNCTYPE(ctypes.c_int)(wrong)() == UNKNOWN
    assert fake.violations() == ["the wrong signature was called: cuStreamGetCtx of 12.5"]
    fake.clear_violations()


def test_an_older_number_may_give_the_old_function(fake: FakeCuda):
    driver = Driver()
    assert driver.find("cuDevicePrimaryCtxRelease", 7000)[1] != driver.find("cuDevicePrimaryCtxRelease", 11000)[1]


@pytest.mark.parametrize(("preset", "version"), PRESETS.items(), ids=list(PRESETS))
def test_drivers_know_what_their_version_brought(fake: FakeCuda, preset: str, version: int):
    fake.preset(preset)
    driver = Driver()
    assert driver.get(ctypes.c_int, "cuDriverGetVersion") == version
    assert driver.find("cuInit", version + 10)[0] == INVALID_VALUE  # newer than the driver
    assert (driver.find("cuCtxRecordEvent", version)[1] is not None) == (version >= 12050)
    assert driver.find("cuCtxGetId", 12000)[1] is not None


def test_one_symbol_can_be_missing(fake: FakeCuda):
    fake.preset("without:cuPointerGetAttributes")
    assert Driver().find("cuPointerGetAttributes", 7000) == (0, None, NO_SYMBOL)


def test_a_driver_of_before_12_has_no_five_arguments(fake: FakeCuda):
    fake.preset("driver_470")
    assert Driver().find("cuInit", 2000)[0] == NOT_FOUND
    address = ctypes.c_void_p()
    assert fake.library.cuGetProcAddress(b"cuInit", ctypes.byref(address), 2000, ctypes.c_uint64(1)) == 0
    assert address.value is not None
    assert fake.library.cuGetProcAddress(b"cuCtxGetId", ctypes.byref(address), 11040, ctypes.c_uint64(1)) == 0
    assert address.value is None


def test_the_library_of_an_old_driver_has_the_old_door_only(fake: FakeCuda):
    old = ctypes.CDLL(str(fake_cuda_old_library()))
    assert not hasattr(old, "cuGetProcAddress_v2")
    address = ctypes.c_void_p()
    assert old.cuGetProcAddress(b"cuInit", ctypes.byref(address), 2000, ctypes.c_uint64(1)) == 0
    assert address.value is not None


def test_nothing_of_the_driver_is_exported_but_the_doors(fake: FakeCuda):
    assert not hasattr(fake.library, "cuInit")
    assert not hasattr(fake.library, "cuMemcpyDtoHAsync_v2")
    assert hasattr(fake.library, "cuGetProcAddress_v2")


@pytest.mark.parametrize(
    ("preset", "code"),
    [("no_device", 100), ("stub_library", 34), ("driver_mismatch", 803), ("compat_not_supported", 804)],
)
def test_initialising_may_fail(fake: FakeCuda, preset: str, code: int):
    fake.preset(preset)
    driver = Driver()
    assert driver.code("cuInit", 0) == code
    assert driver.code_of_get("cuDeviceGetCount") == 3


def test_errors_have_the_drivers_own_words(fake: FakeCuda):
    driver = Driver()
    assert driver.get(ctypes.c_char_p, "cuGetErrorName", 700) == b"CUDA_ERROR_ILLEGAL_ADDRESS"
    assert driver.get(ctypes.c_char_p, "cuGetErrorString", 2) == b"out of memory"
    assert driver.code_of_get("cuGetErrorName", 12345) == INVALID_VALUE


def test_requests_are_noted(fake: FakeCuda):
    Driver().find("cuInit", 2000, 2)
    assert fake.requests() == [("cuInit", 2000, 2)]


def test_unknown_presets_and_schedules_are_mistakes_of_the_test(fake: FakeCuda):
    with pytest.raises(ValueError, match="no preset is called 'driver_1'"):
        fake.preset("driver_1")
    with pytest.raises(ValueError, match="no schedule is called 'soon'"):
        fake.schedule("soon")
