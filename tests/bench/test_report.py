"""The page stands alone, has two themes, can be read without seeing, and shows the figures of the run."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import replace

import pytest

from helpers.bench_runs import against, made_up_run, ours, private_copy, run_of
from helpers.html_page import parse
from tensorferry import MissingDependencyError
from tensorferry.bench import ALONE, Result
from tensorferry.bench import _report as report


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The text of a page."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(made_up_run(), path)
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(source):
    """The same page, parsed."""
    return parse(source)


def test_it_is_well_formed_and_needs_no_other_file_no_network_and_no_script(page, source):
    assert page.open == []
    assert [name for name, _ in page.tags if name in ("script", "link", "img", "iframe", "object", "base")] == []
    targets = [value for _, attributes in page.tags for key, value in attributes.items() if key in ("href", "src")]
    assert [target for target in targets if not target.startswith("#")] == []
    assert re.findall(r"(?:https?:)?//\w[^\s<\"]*", source) == []
    assert "url(" not in source
    assert "@import" not in source


def test_links_lead_to_an_element_and_ids_are_unique(page):
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    targets = {value[1:] for _, attributes in page.tags for key, value in attributes.items() if key == "href"}
    assert targets - set(ids) == set()


def test_both_themes_define_every_colour_that_is_used(page, source):
    light, dark = page.style.split("@media (prefers-color-scheme: dark)")
    used = set(re.findall(r"var\(--([\w-]+)\)", source))
    for theme in (light, dark.partition("}")[0]):
        assert used - set(re.findall(r"--([\w-]+):", theme)) == set()


def test_pictures_have_no_colours_of_their_own(source):
    pictures = "".join(re.findall(r"<svg.*?</svg>", source, re.DOTALL))
    assert re.findall(r"#[0-9a-fA-F]{6}\b", pictures) == []


def _contrast(first, second):
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(first), light(second)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_has_the_contrast_that_wcag_asks_for(page, theme):
    part = page.style.split("@media (prefers-color-scheme: dark)")[theme].partition("}")[0]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part))
    on_paper = [(name, "paper") for name in ("ink", "muted", "link", "faster", "slower")]
    in_heat = [("ink", name) for name in ("f1", "f2", "n", "s1")] + [("f4-ink", "f4"), ("s3-ink", "s3")]
    for text, ground in [*on_paper, *in_heat, ("ink", "f3"), ("ink", "s2"), ("muted", "card")]:
        assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_every_case_has_a_section_and_every_picture_a_title_and_a_description(page):
    headings = {attributes.get("id") for attributes in page.having("h3")}
    assert headings == {"copy.private", "view.tensor", "cast.bad"}
    pictures = page.having("svg")
    assert len(pictures) == 5  # all cases at a glance, bars for each, curves for the one with three sizes
    assert len(page.having("title")) == len(pictures) + 1
    assert len(page.having("desc")) == len(pictures)
    for picture in pictures:
        assert picture["role"] == "img"
        assert len(picture["aria-labelledby"].split()) == 2


def test_heads_of_tables_say_what_they_are_heads_of(page):
    scopes = Counter(attributes.get("scope") for attributes in page.having("th"))
    assert set(scopes) == {"col", "row", "rowgroup"}


def test_text_of_the_run_is_escaped(page):
    assert "A cast <that> fails & is shown" in "".join(page.text)


def test_every_candidate_of_every_point_is_in_a_table_with_its_figures(page):
    rows = [row for row in page.rows if row and row[0] == "t.clone().numpy()"]
    times = [row[1] for row in rows]
    # ours takes a quarter of it where contiguous, three quarters where transposed
    assert times == ["400 us", "6.40 ms", "25.6 ms", "400 us", "6.40 ms", "25.6 ms"]
    assert [row[4:6] for row in rows[:1]] == [["0.25 (0.22, 0.28)", "faster"]]
    assert [row[4:6] for row in rows[3:4]] == [["0.75 (0.66, 0.84)", "faster"]]
    assert rows[0][2:4] == ["5.24", "20%"]
    assert rows[0][6] == "<=0.33 met"
    best = [row for row in page.rows if row and row[0] == "* t.numpy().copy()"]
    assert [row[5] for row in best] == ["faster"] * 3 + ["slower"] * 3
    assert [row[6] for row in best] == ["<=1.00 met"] * 3 + ["<=1.00 NOT MET"] * 3


def test_the_heat_map_has_layouts_by_sizes(page):
    at = next(i for i, row in enumerate(page.rows) if row == ["layout / size", "1 MiB", "16 MiB", "64 MiB"])
    assert page.rows[at + 1 : at + 3] == [["contiguous", *["0.50"] * 3], ["transposed", *["1.50"] * 3]]


def test_the_heat_map_of_a_cast_has_what_is_cast_from_by_what_is_cast_to(tmp_path):
    casts = {"float64 to float32": 0.2, "float32 to float16": 0.4, "float64 to float16": 0.6}
    results = [
        replace(private_copy(1 << 20, "", 1e-3, ratio), case="cast.all", point={"nbytes": 1 << 20, "dtype": cast})
        for cast, ratio in casts.items()
    ]
    report.write(run_of(results), tmp_path / "report.html")
    rows = parse((tmp_path / "report.html").read_text(encoding="utf-8")).rows
    at = rows.index(["from / to", "float32", "float16"])
    assert rows[at + 1 : at + 3] == [["float64", "0.20", "0.60"], ["float32", "", "0.40"]]


def test_cells_are_coloured_by_their_ratio(source):
    cells = dict(re.findall(r'<td class="(\w+)" title="[^"]*">([\d.]+)</td>', source))
    assert cells == {"f3": "0.50", "s2": "1.50"}


def test_the_headline_counts_goals_points_values_and_failures(page):
    bold = re.sub(r"\s+", " ", " ".join(page.text))
    assert "15 of 19 goals met, counted point by point, 1 could not be judged" in bold
    assert "4 of 7 points faster than the best peer; 0 no difference, 3 slower" in bold
    assert "6,064 values compared" in bold
    assert "1 of our candidates failed" in bold


def test_what_was_left_out_is_told_with_its_reason(page):
    said = " ".join(page.text)
    assert "cupy.asarray(t): not installed: cupy (1 result)" in said
    assert "cast.bad (float64 to float32): interrupted after 11 rounds" in said
    assert "The run was interrupted" in said


def test_measured_and_simulated_are_told_apart():
    from tensorferry.bench._report._page import page as page_of

    measured = private_copy(1 << 20, "contiguous", 1e-3)
    simulated = replace(measured, origin="simulated", point={"nbytes": 4096})
    assert "1 result on cpu, all measured." in page_of(run_of([measured]))
    assert "2 results on cpu; 1 of them simulated." in page_of(run_of([measured, simulated]))


def test_the_environment_is_in_it(page):
    assert ["processor", "a made-up one"] in page.rows
    assert ["L2", "1 MiB"] in page.rows
    assert ["GPU", "none"] in page.rows


def test_the_page_is_small_and_the_same_each_time(source, tmp_path):
    assert len(source) < 150_000
    report.write(made_up_run(), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == source


def test_a_run_in_which_nothing_could_be_timed_still_has_a_page(tmp_path):
    wrong = made_up_run().results[-1]
    bare = Result("a.b", "Nothing ran", {}, (wrong.ours,))
    report.write(run_of([bare]), tmp_path / "report.html")
    page = parse((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert any("3 of 64 values differ" in text for text in page.text)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'tensorferry\[bench\]'"):
        report.write(made_up_run(), tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def beside_a_loop(blocks, percent, seconds, ratio):
    """A loop that takes `ratio` times as long as alone, while 6 GB are copied beside it."""
    point = {"nbytes": 6_000_000_000, "rows": 4096, "blocks": blocks, "percent": percent}
    return Result("interference.kernel", "A loop beside copies", point, (ours(seconds), against(seconds, ALONE, ratio)))


def test_the_slow_down_of_a_loop_is_drawn_over_the_rate_of_the_copies(tmp_path):
    results = [beside_a_loop(1, 40, 1.0, 1.01), beside_a_loop(8, 95, 0.2, 1.05), beside_a_loop(8, 40, 0.5, 1.02)]
    report.write(run_of(results), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1 block: 1.0 % at 6.0 GB/s; 8 blocks: 2.0 % at 12.0 GB/s, 5.0 % at 30.0 GB/s" in text
    assert "% that the loop takes longer" in text
    assert parse(text).open == []


def test_without_a_loop_no_slow_down_is_drawn(source):
    assert "that the loop takes longer" not in source
