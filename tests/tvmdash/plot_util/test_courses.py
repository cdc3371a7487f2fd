"""Pictures of one run, and folders of pictures that are drawn again only where something changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tvmdash.errors import DashboardError
from tvmdash.plot_util import Bar, BarValue, Course, Panel, Span, Track, alt_text, render
from tvmdash.plot_util.files import draw_changed

SECONDS = (0.0, 1.0, 2.0)


def course(*panels: Panel, spans: tuple[Span, ...] = (), title: str = "A run") -> Course:
    return Course(title, SECONDS, panels, spans)


HOT = Panel("°C", (Track("package", (50.0, None, 60.0)), Track("board", (None, None, None))))


def test_a_course_says_ranges_and_shaded_stretches_in_words() -> None:
    plot = course(HOT, spans=(Span(0.5, 1.5, "mlp: 3.0x"),))
    assert alt_text(plot) == "A run: over 2.00 s, package 50.0 to 60.0 °C; shaded: mlp: 3.0x."


def test_a_course_is_an_svg_with_its_words_and_names() -> None:
    picture = render(course(HOT, spans=(Span(0.5, 1.5, "a <b> & c"),))).decode()
    assert "<title>A run</title>" in picture
    assert "a &lt;b&gt; &amp; c" in picture
    assert "package  60.0" in picture
    assert "board" not in picture, "a quantity without a value is no line"


def test_the_same_course_gives_the_same_bytes() -> None:
    assert render(course(HOT)) == render(course(HOT))


@pytest.mark.parametrize(
    "plot", [course(), course(Panel("°C", (Track("none", (None,) * 3),))), Course("A run", (), ())]
)
def test_a_course_without_a_value_says_so(plot: Course) -> None:
    assert alt_text(plot) == "A run: no data."
    assert "no data" in render(plot).decode()


def test_nothing_is_left_out_silently() -> None:
    many = Panel("MHz", tuple(Track(f"core {core}", (1.0, 2.0, 3.0)) for core in range(10)))
    spans = tuple(Span(0, 1, str(number)) for number in range(15))
    picture = render(course(many, spans=spans)).decode()
    assert "2 more lines of MHz" in picture
    assert "3 more intervals are not shaded" in picture


@pytest.mark.parametrize("values", [(1e200, -1e200, 0.0), (float("nan"), float("inf"), 5.0), (0.0, 0.0, 0.0)])
def test_odd_numbers_still_draw(values: tuple[float, ...]) -> None:
    assert render(course(Panel("x", (Track("odd", values),)))).startswith(b"<?xml")


def test_a_track_of_another_length_is_refused() -> None:
    with pytest.raises(DashboardError, match="'short' has 1 values for 3 seconds"):
        course(Panel("x", (Track("short", (1.0,)),)))


def bars(value: float) -> Bar:
    return Bar("Bars", "ms", (BarValue("a", value),))


def test_only_changed_pictures_are_drawn_and_those_no_longer_wanted_go(tmp_path: Path) -> None:
    folder = tmp_path / "graphs"
    assert draw_changed({"a": bars(1), "b": bars(2)}, folder).drawn == ("a", "b")
    again = draw_changed({"a": bars(1), "b": bars(3)}, folder)
    assert (again.drawn, again.kept) == (("b",), ("a",))
    assert draw_changed({"a": bars(1)}, folder).removed == ("b",)
    assert not (folder / "b.svg").exists()


@pytest.mark.parametrize("damage", ["{", "[]", ""])
def test_where_it_is_not_known_what_was_drawn_all_is_drawn(tmp_path: Path, damage: str) -> None:
    draw_changed({"a": bars(1)}, tmp_path)
    (tmp_path / "drawn.json").write_text(damage)
    assert draw_changed({"a": bars(1)}, tmp_path).drawn == ("a",)


def test_a_picture_that_somebody_removed_is_drawn_again(tmp_path: Path) -> None:
    draw_changed({"a": bars(1)}, tmp_path)
    (tmp_path / "a.svg").unlink()
    assert draw_changed({"a": bars(1)}, tmp_path).drawn == ("a",)
