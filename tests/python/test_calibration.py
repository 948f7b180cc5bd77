"""Calibrations of a link: what follows from a measurement, and when a stored one holds. Pure functions."""

import dataclasses
import json
import math

import pytest

from tensorferry._device.calibration import Calibration, LinkKey, dump, figures_from, parse, why_not_usable
from tensorferry._device.link_figures import LinkFigures
from tensorferry._native import core

KEY = LinkKey("NVIDIA H100", "ab" * 16, "00000000:3B:00.0", "CUDA 12.4, 550.54", "0.2.0", "PCIe 32 GT/s x16", 0)
FIGURES = LinkFigures("calibrated on 2026-01-31", 52e9, 260_000, 65_000, 16_384, 4096, 1 << 20)
MEASURED = {"small": [(4096, 5e-6, 6e-6)], "pitched": [(4096, 0.97)]}
STORED = Calibration(KEY, "2026-01-31", 52e9, FIGURES, {"seconds": 0.2})
IN_PROPORTION = {**dataclasses.asdict(FIGURES), "source": "calibrated"}


def derived(**measured):
    return figures_from({**MEASURED, **measured}, IN_PROPORTION, "2026-01-31")


def test_stores_get_five_microseconds_of_the_measured_rate_when_waiting_and_a_quarter_of_that_when_not():
    told = core.figures_for_rate(40e9)
    assert told["to_host_nbytes_per_s"] == 40e9
    assert (told["stores_when_waiting_nbytes"], told["stores_when_not_nbytes"]) == (200_000, 50_000)


def test_figures_say_when_they_were_measured():
    assert derived().source == "calibrated on 2026-01-31"


@pytest.mark.parametrize(
    ("small", "stored"),
    [
        ([(4096, 5e-6, 6e-6), (16384, 6e-6, 6e-6), (65536, 9e-6, 7e-6)], 16384),
        ([(4096, 7e-6, 6e-6), (16384, 5e-6, 6e-6)], 0),
        ([(4096, 5e-6, 6e-6), (16384, 5e-6, 6e-6), (1 << 20, 5e-6, 6e-6)], 260_000),
        ([(4096, 0, 6e-6), (16384, 0, 6e-6)], 16384),
        ([], 16384),
    ],
    ids=[
        "as long as stores are no slower than copies",
        "never where the smallest copy is faster",
        "no further than what is stored when waiting",
        "by default where there are no kernels",
        "by default where nothing was measured",
    ],
)
def test_blocks_are_stored(small, stored):
    assert derived(small=small).stores_of_blocks_nbytes == stored


@pytest.mark.parametrize(
    ("pitched", "rows_from"),
    [
        ([(4096, 0.99), (2048, 0.96), (1024, 0.95), (512, 0.7)], 1024),
        ([(512, 0.99), (4096, 0.99), (1024, 0.99), (2048, 0.99)], 512),
        ([(4096, 0.99), (2048, 0.5), (1024, 0.99)], 4096),
        ([(4096, 0.5), (2048, 0.99)], 4096),
        ([], 4096),
    ],
    ids=["down to 95 percent", "in any order", "not past a gap", "from the default at most", "by default"],
)
def test_rows_are_copied_as_they_are(pitched, rows_from):
    assert derived(pitched=pitched).rows_from_nbytes == rows_from


def test_a_calibration_holds_where_nothing_has_changed():
    assert why_not_usable(STORED, KEY, 52e9) == ""


@pytest.mark.parametrize("field", [one.name for one in dataclasses.fields(LinkKey)])
def test_another_key_discards_it(field):
    other = 1 if field == "node" else "another"
    why = why_not_usable(STORED, dataclasses.replace(KEY, **{field: other}), 52e9)
    assert field.replace("_", " ") in why
    assert str(other) in why


@pytest.mark.parametrize(
    ("now", "holds"),
    [(52e9, True), (47e9, True), (57e9, True), (46e9, False), (58e9, False), (0.0, False)],
    ids=["the same", "9.6 percent less", "9.6 percent more", "11.5 percent less", "11.5 percent more", "unknown"],
)
def test_a_link_that_moved_by_more_than_a_tenth_discards_it(now, holds):
    assert (why_not_usable(STORED, KEY, now) == "") == holds


def test_where_the_system_never_told_the_rate_nothing_moved():
    assert why_not_usable(dataclasses.replace(STORED, link_nbytes_per_s=0.0), KEY, 0.0) == ""


def test_what_is_written_is_read():
    other = dataclasses.replace(STORED, key=dataclasses.replace(KEY, uuid="cd" * 16, node=-1))
    found = {one.key.uuid: one for one in (STORED, other)}
    assert parse(dump(found)) == found


def document():
    return json.loads(dump({KEY.uuid: STORED}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        '{"format": 2, "devices": {}}',
        '{"format": 1}',
        '{"format": 1, "devices": []}',
        "[" * 10**5,
    ],
    ids=[
        "empty",
        "cut short",
        "a list",
        "null",
        "a number",
        "a later format",
        "no devices",
        "a list of devices",
        "deep",
    ],
)
def test_a_corrupted_file_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"\w"):
        parse(text)


def test_a_file_that_is_cut_anywhere_is_refused():
    text = dump({KEY.uuid: STORED}).rstrip()
    for end in range(len(text)):
        with pytest.raises(ValueError, match=r"\w"):
            parse(text[:end])


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("figures", "rows_from_nbytes", 256),
        ("figures", "rows_from_nbytes", 4096.0),
        ("figures", "stores_when_waiting_nbytes", -1),
        ("figures", "stores_when_waiting_nbytes", 1 << 40),
        ("figures", "stores_of_blocks_nbytes", True),
        ("figures", "gathers_below_nbytes", "1"),
        ("figures", "to_host_nbytes_per_s", math.nan),
        ("figures", "to_host_nbytes_per_s", math.inf),
        ("figures", "to_host_nbytes_per_s", 0),
        ("figures", "source", "link"),
        ("figures", "unheard_of", 1),
        ("key", "node", 0.5),
        ("key", "device", None),
        ("key", "uuid", "of another"),
        (None, "date", 20260131),
        (None, "date", "yesterday"),
        (None, "link_nbytes_per_s", None),
        (None, "measured", []),
        (None, "key", 1),
        (None, "figures", None),
    ],
)
def test_a_damaged_calibration_is_left_out_and_others_are_kept(part, field, value):
    damaged, good = document(), document()["devices"][KEY.uuid]
    entry = damaged["devices"][KEY.uuid]
    (entry if part is None else entry[part])[field] = value
    damaged["devices"]["cd" * 16] = {**good, "key": {**good["key"], "uuid": "cd" * 16}}
    assert list(parse(json.dumps(damaged))) == ["cd" * 16]
