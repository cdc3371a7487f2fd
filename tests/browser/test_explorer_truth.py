"""The explorer over a home whose truth is planted, from disk: what it shows is what was measured."""

from __future__ import annotations

import csv
import itertools
import math
import re
import statistics
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from watching import Watched, opening

from tests.subsystem.stat_alerts.alert_homes import stamp_of
from tests.subsystem.website import planted
from tvmdash import common

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tvmdash.dashboard_info import Home


WALK = """async () => {
  const chart = document.querySelector("#chart"), found = [];
  chart.dispatchEvent(new KeyboardEvent("keydown", {key: "End", bubbles: true}));
  while (document.querySelector("#card").hidden) await new Promise((done) => setTimeout(done, 10));
  const texts = (name) => [...document.querySelectorAll(`#card ${name}`)].map((one) => one.textContent);
  for (let key = "Home"; ; key = "ArrowRight") {
    chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    await new Promise((done) => setTimeout(done, 0));
    const values = texts("dd"), facts = texts("dt").map((name, at) => [name, values[at]]);
    if (key !== "Home" && JSON.stringify(found[found.length - 1][1]) === JSON.stringify(facts)) return found;
    const x = Number(document.querySelector(".chart-dot").style.transform.match(/[\\d.]+/)[0]);
    found.push([x, facts, texts(".card-value strong")[0]]);
  }
}"""


class Explorer:
    """The page of the planted home in a browser."""

    def __init__(self, home: Home, watched: Watched) -> None:
        self.home = home
        self.watched = watched
        self.page = watched.page
        index = common.read_json(home.output("website") / "index.json")["series"]
        rows = zip(index["name"], index["id"], strict=True)
        self.ids = {name: series for name, series in rows if name.endswith("run time")}

    def id_of(self, name: str) -> str:
        return self.ids[f"{name} run time"]

    def show(self, names: list[str], **state: str) -> None:
        """Chart series, as in "cnn_comp cnn.resnet18"."""
        parts = {"series": ",".join(map(self.id_of, names)), **state}
        self.watched.go("index.html")
        self.watched.go("explore.html#" + "&".join(f"{key}={value}" for key, value in parts.items()), drawn=True)
        self.watched.settle()

    def ms(self, experiment: str, workload: str, night: int) -> float:
        """What was measured."""
        data = common.read_json(self.home.data(experiment) / f"data_{stamp_of(night)}.json")
        (found,) = (record for record in data["records"] if record["workload"] == workload)
        return found["execution_elapsed_ms_mean"]

    def walk(self) -> list[tuple[float, dict[str, str], str]]:
        """From the first point in view to the last by the arrow keys: where it is, its facts, its value."""
        return [(x, dict(facts), value) for x, facts, value in self.watched.evaluate(WALK)]

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()


@pytest.fixture(scope="module")
def _explorer(chromium: Browser, planted_home: Home) -> Iterator[Explorer]:
    with opening(chromium, f"{planted_home.output('website').resolve().as_uri()}/") as watched:
        yield Explorer(planted_home, watched)
        watched.begin()


@pytest.fixture
def explorer(_explorer: Explorer) -> Iterator[Explorer]:
    _explorer.watched.begin()
    yield _explorer
    _explorer.watched.assert_quiet()


RESNET = "cnn_comp cnn.resnet18"


def gaps(places: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(places)]


def day_of(night: int) -> str:
    return f"{common.parse_stamp(stamp_of(night)):%Y-%m-%d %H:%M UTC}"


def test_by_date_nights_are_as_far_apart_as_they_were_and_by_night_all_alike(explorer: Explorer) -> None:
    nights = planted.nights()
    off = nights.index(planted.OFF and max(planted.OFF) + 1) - 1
    explorer.show([RESNET])
    by_date = list(explorer.walk())
    assert [facts["night"] for _, facts, _ in by_date] == [day_of(night) for night in nights]
    for night, (_, facts, value) in zip(nights, by_date, strict=True):
        assert value == f"{explorer.ms('cnn_comp', 'cnn.resnet18', night):.2f} ms"
        assert facts["TVM"] == planted.commit_of(night)
    wide = gaps([x for x, _, _ in by_date])
    assert wide.pop(off) == pytest.approx((len(planted.OFF) + 1) * wide[0], rel=0.01)
    assert wide == pytest.approx([wide[0]] * len(wide), rel=0.02)
    explorer.page.select_option("#x", label="by night")
    explorer.page.wait_for_function("() => location.hash.includes('x=night')")
    explorer.watched.settle()
    by_night = list(explorer.walk())
    assert [words for _, *words in by_night] == [words for _, *words in by_date]
    even = gaps([x for x, _, _ in by_night])
    assert even == pytest.approx([even[0]] * len(even), rel=0.02)


def test_by_commit_the_nights_of_one_stand_together(explorer: Explorer) -> None:
    explorer.show([RESNET], x="commit")
    assert explorer.page.input_value("#x") == "commit"
    walked = list(explorer.walk())
    assert [facts["night"] for _, facts, _ in walked] == [day_of(night) for night in planted.nights()]
    places: dict[str, list[float]] = {}
    for x, facts, _ in walked:
        places.setdefault(facts["TVM"], []).append(x)
    together = places[planted.commit_of(planted.SAME_COMMIT[0])]
    assert [len(found) for found in places.values() if len(found) > 1] == [len(planted.SAME_COMMIT)]
    middles = gaps([sum(found) / len(found) for found in places.values()])
    assert middles == pytest.approx([middles[0]] * len(middles), rel=0.02)
    assert max(gaps(together)) < middles[0] / 3
    before = list(places.values())[list(places).index(planted.commit_of(planted.SAME_COMMIT[0])) - 1][0]
    assert together[0] - before > 2 * max(gaps(together))


def test_a_part_of_the_commits_is_a_part_of_the_nights_on_any_axis(explorer: Explorer) -> None:
    explorer.show([RESNET], x="commit")
    box = explorer.page.locator("#chart .u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    explorer.page.mouse.move(box["x"] + box["width"] * 0.8, middle)
    explorer.page.mouse.down()
    explorer.page.mouse.move(box["x"] + box["width"] * 0.9, middle)
    explorer.page.mouse.move(box["x"] + box["width"] - 1, middle)
    explorer.page.mouse.up()
    explorer.watched.settle()
    chosen = [facts["night"] for _, facts, _ in explorer.walk()]
    assert 5 < len(chosen) < 10
    assert chosen[-1] == day_of(planted.TONIGHT)
    assert re.search(r"from=20260[56]\d\dT031500Z&to=20260609T031500Z", explorer.page.url)
    for other in ("by night", "by date"):
        explorer.page.select_option("#x", label=other)
        explorer.page.wait_for_function(
            f"() => location.hash.includes('x={other.split()[1]}')"
            if other != "by date"
            else "() => !location.hash.includes('x=')"
        )
        explorer.watched.settle()
        assert [facts["night"] for _, facts, _ in explorer.walk()] == chosen


OPERATORS = [f"operators op.{name}" for name in ("dense", "layer_norm", "conv2d_14")]
NOISY = f"operators op.{planted.NOISY}"


def baseline(explorer: Explorer, name: str) -> float:
    """The median of the first ten nights."""
    experiment, workload = name.split()
    return statistics.median(explorer.ms(experiment, workload, night) for night in planted.nights()[:10])


def percent(ratio: float) -> str:
    """As the site writes a change of some percent."""
    text = f"{abs(ratio - 1) * 100:.{1 if abs(ratio - 1) >= 0.00995 else 2}f}"
    return f"{'+' if ratio > 1 else '−'}{text} %"


def test_a_group_has_the_geometric_mean_of_its_members_ratios(explorer: Explorer) -> None:
    members = [
        f"cnn_engines cnn.{name} run time (engine {engine})"
        for name in ("resnet18", "mobilenet")
        for engine in ("tvm", "torch")
    ]
    index = common.read_json(explorer.home.output("website") / "index.json")["series"]
    ids = dict(zip(index["name"], index["id"], strict=True))
    explorer.watched.go("index.html")
    explorer.watched.go(f"explore.html#series={','.join(ids[name] for name in members)}", drawn=True)
    assert explorer.texts("#group option") == ["nothing", "all series", "engine", "grade", "workload"]
    explorer.page.select_option("#group", "engine")
    explorer.page.wait_for_selector("#legend .is-mean")
    assert "group=engine" in explorer.page.url
    assert explorer.texts("#legend .is-mean .series-name") == ["engine torch: mean of 2", "engine tvm: mean of 2"]
    assert explorer.page.is_checked("#relative")
    assert "geometric mean of the members' ratios to their baselines" in explorer.watched.text("#rule")
    measured = planted.nights()[:-1]  # tonight it failed

    def ratio(workload: str, night: int) -> float:
        def ms(at: int) -> float:
            data = common.read_json(explorer.home.data("cnn_engines") / f"data_{stamp_of(at)}.json")
            (found,) = (one for one in data["records"] if (one["workload"], one["engine"]) == (workload, "torch"))
            return found["execution_elapsed_ms_mean"]

        return ms(night) / statistics.median(map(ms, measured[:10]))

    walked = explorer.walk()
    assert len(walked) == len(measured)
    for night, (_, facts, _) in zip(measured, walked, strict=True):
        mean = math.sqrt(ratio("cnn.resnet18", night) * ratio("cnn.mobilenet", night))
        told = float(facts["from the baseline"].removesuffix(" %").replace("−", "-"))
        assert told == pytest.approx(100 * (mean - 1), abs=0.051)
        assert facts["mean of"] == "2 of 2 series"
    explorer.page.select_option("#group", "all")
    explorer.page.wait_for_selector("#legend .is-mean:has-text('all: mean of 4')")


def scale(explorer: Explorer) -> tuple[float, float]:
    """From where to where the y axis goes, as fractions: the values of the lowest and highest pixel."""
    return tuple(explorer.watched.evaluate(f"({SCALE})()"))


SCALE = """async () => {
  const chart = document.querySelector("#chart"), press = (key) =>
    chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const dot = document.querySelector(".chart-dot"), height = dot.parentElement.clientHeight;
  const points = [];
  press("End");
  while (document.querySelector("#card").hidden) await new Promise((done) => setTimeout(done, 10));
  for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"]) {
    press(key);
    await new Promise((done) => setTimeout(done, 0));
    const term = [...document.querySelectorAll("#card dt")].find((one) => one.textContent === "from the baseline");
    const words = term.nextElementSibling.textContent.replace("\\u2212", "-");
    const y = Number(dot.style.transform.match(/, ([\\d.]+)px/)[1]);
    if (y > 0 && y < height) points.push([y, parseFloat(words) / 100]);
  }
  points.sort((a, b) => a[0] - b[0]);
  const [high, low] = [points[0], points[points.length - 1]], each = (high[1] - low[1]) / (high[0] - low[0]);
  return [low[1] + (height - low[0]) * each, high[1] - high[0] * each];
}"""


def test_a_noisy_series_does_not_set_the_scale_of_the_others(explorer: Explorer) -> None:
    explorer.show(OPERATORS, relative="1")
    low, high = scale(explorer)
    assert explorer.watched.text("#outside") == ""
    explorer.show([*OPERATORS, NOISY], relative="1")
    noisy_low, noisy_high = scale(explorer)
    assert noisy_high - noisy_low < 2 * (high - low) < 0.2
    ratios = [
        explorer.ms("operators", f"op.{planted.NOISY}", night) / baseline(explorer, NOISY) - 1
        for night in planted.nights()
    ]
    outside = sum(not noisy_low <= ratio <= noisy_high for ratio in ratios)
    assert outside > 5
    assert explorer.watched.text("#outside").startswith(f"{outside} points in view lie outside the scale")
    explorer.page.click("text=Show all values")
    explorer.page.wait_for_function("() => !document.querySelector('#outside').textContent")
    assert explorer.page.input_value("#y") == "all"
    all_low, all_high = scale(explorer)
    assert all_low < min(ratios)
    assert all_high > max(ratios)


def test_a_point_outside_the_scale_is_told_with_its_value_at_the_edge(explorer: Explorer) -> None:
    explorer.show([*OPERATORS, NOISY], relative="1")
    worst = max(planted.nights(), key=lambda night: explorer.ms("operators", f"op.{planted.NOISY}", night))
    explorer.show([*OPERATORS, NOISY], relative="1", at=f"{explorer.id_of(NOISY)}@{stamp_of(worst)}")
    value = explorer.ms("operators", f"op.{planted.NOISY}", worst)
    assert explorer.watched.text("#card .card-value strong") == f"{value:.4f} ms"
    dot = explorer.watched.evaluate("document.querySelector('.chart-dot').style.transform")
    assert dot.endswith(", 0px)")


def test_fitted_to_steps_the_scale_holds_the_planted_steps_and_little_more(explorer: Explorer) -> None:
    step = f"operators op.{planted.OLDER[0]}"
    explorer.show([step, *OPERATORS, NOISY], relative="1", y="steps")
    low, high = scale(explorer)
    assert -0.08 < low < -0.01
    assert planted.OLDER[1] - 1 < high < planted.OLDER[1] - 1 + 0.06


def test_numbers_of_change_say_what_they_compare(explorer: Explorer) -> None:
    explorer.show([RESNET])
    value = explorer.ms("cnn_comp", "cnn.resnet18", planted.TONIGHT)
    moved = percent(value / baseline(explorer, RESNET))
    assert explorer.texts("#legend .series-value") == [f"{value:.2f} ms, {moved} from baseline"]
    (listed,) = explorer.texts("#list li:has(input:checked) .series-value")
    assert listed == f"{value:.2f} ms, +8.0 % from the level before"


def test_an_incident_leads_to_all_its_series_and_nights(explorer: Explorer) -> None:
    explorer.watched.go("index.html")
    explorer.page.click("[data-incident] a[href*='incidents/'] >> nth=0")
    explorer.page.click("text=All 4 series of this incident in the explorer")
    explorer.watched.wait_drawn()
    moved = [f"cnn_comp cnn.{name} run time" for name in planted.SLOWER] + [
        f"operators op.{planted.FASTER[0]} run time"
    ]
    assert sorted(explorer.texts("#legend .series-name")) == sorted(moved)
    first = common.parse_stamp(stamp_of(planted.nights()[-31]))
    assert explorer.page.input_value("#from") == f"{first:%Y-%m-%d}"
    assert explorer.page.input_value("#to") == "2026-06-09"
    assert explorer.watched.text("#mark-kinds .kind-incident .count") == "1"


def test_small_multiples_show_each_series_with_its_own_values_of_one_night(explorer: Explorer) -> None:
    names = [*OPERATORS, NOISY]
    explorer.show(names)
    explorer.page.check("#multiples-on")
    explorer.page.wait_for_selector(".multiple svg")
    assert not explorer.page.is_visible("#chart")
    assert "multiples=1" in explorer.page.url
    captions = explorer.texts(".multiple figcaption")
    for name, caption in zip(names, captions, strict=True):
        experiment, workload = name.split()
        value = explorer.ms(experiment, workload, planted.TONIGHT)
        moved = percent(value / baseline(explorer, name))
        assert (
            caption
            == f"{name} run time {value:.{4 if value < 1 else 3}f} ms, {moved} from baseline, {day_of(planted.TONIGHT)}"
        )
    explorer.page.focus("#multiples")
    explorer.page.keyboard.press("Home")
    assert all(caption.endswith(day_of(0)) for caption in explorer.texts(".multiple figcaption"))
    explorer.page.keyboard.press("ArrowRight")
    assert all(caption.endswith(day_of(1)) for caption in explorer.texts(".multiple figcaption"))
    boxes = explorer.page.locator(".multiple-rule").all()
    assert len({box.get_attribute("x1") for box in boxes}) == 1, "the same nights stand at the same place"
    explorer.page.keyboard.press("ArrowDown")
    explorer.page.keyboard.press("Enter")
    explorer.page.wait_for_selector("#chart:visible")
    assert explorer.texts("#legend .series-name") == [f"{names[1]} run time"]


def test_small_multiples_of_groups_are_one_for_each_mean(explorer: Explorer) -> None:
    explorer.show([*OPERATORS, RESNET], group="experiment", multiples="1")
    explorer.page.wait_for_selector(".multiple svg")
    names = explorer.texts(".multiple figcaption bdi")
    assert names == ["experiment cnn_comp: mean of 1", "experiment operators: mean of 3"]


def save(explorer: Explorer, button: str, folder: Path) -> Path:
    with explorer.page.expect_download() as started:
        explorer.page.click(button)
    path = folder / started.value.suggested_filename
    started.value.save_as(path)
    return path


def test_last_month_is_exported_as_csv_in_two_clicks(explorer: Explorer, tmp_path: Path) -> None:
    explorer.show([RESNET], relative="1")
    explorer.page.click("text=Last month")
    explorer.page.wait_for_function("() => location.hash.includes('from=2026-05-01&to=2026-05-31')")
    explorer.watched.settle()
    path = save(explorer, "#saveCsv", tmp_path)
    assert path.name == "tvm-2026-05-01-to-2026-05-31.csv"
    content = path.read_bytes().decode()
    assert "\r" not in content
    rows = list(csv.DictReader(content.splitlines()))
    may = [night for night in planted.nights() if stamp_of(night) < "20260601"]
    assert len(rows) == len(may)
    for night, row in zip(may, rows, strict=True):
        value = explorer.ms("cnn_comp", "cnn.resnet18", night)
        assert row["night"] == f"{common.parse_stamp(stamp_of(night)):%Y-%m-%dT%H:%M:%SZ}"
        assert (row["commit"], row["series"], row["unit"]) == (planted.commit_of(night), f"{RESNET} run time", "ms")
        numbers = [float(row[name]) for name in ("value", "low", "high", "ratio_to_baseline")]
        base = baseline(explorer, RESNET)
        assert numbers == pytest.approx([value, value * 0.999, value * 1.001, value / base], rel=1e-6)


def test_all_series_of_a_span_are_exported_without_charting_them(explorer: Explorer, tmp_path: Path) -> None:
    explorer.show([RESNET], to="2026-05-03", q="experiment=operators metric=run_time")
    explorer.page.wait_for_selector("#list button:has-text('CSV of all 10')")
    path = save(explorer, "#list button:has-text('CSV of all 10')", tmp_path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    told = {(row["series"], row["night"][:10], float(row["value"])) for row in rows}
    assert told == {
        (
            f"operators op.{name} run time",
            f"2026-05-0{night + 1}",
            float(f"{explorer.ms('operators', f'op.{name}', night):.7g}"),
        )
        for name in planted.OPERATORS
        for night in range(3)
    }


def test_the_view_is_saved_as_a_picture_that_needs_nothing_else(explorer: Explorer, tmp_path: Path) -> None:
    explorer.show([RESNET], x="commit")
    drawing = ET.parse(save(explorer, "#saveSvg", tmp_path)).getroot()
    texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    for night in (0, planted.TONIGHT):
        assert planted.commit_of(night)[:9] in texts
    assert f"{planted.commit_of(planted.SAME_COMMIT[0])[:9]} \u00d73" in texts
    assert f"{RESNET} run time" in texts
    assert not [element for element in drawing.iter() if {"class", "style", "href"} & set(element.attrib)]
    (line,) = (one for one in drawing.iter("{http://www.w3.org/2000/svg}polyline") if one.get("stroke-width") == "1.6")
    assert len((line.get("points") or "").split()) == len(planted.nights())
    picture = save(explorer, "#savePng", tmp_path).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20], "big") == 2400


def stops(explorer: Explorer) -> list[str]:
    """Where Tab leads in the explorer, from the query on."""
    found = []
    explorer.page.focus("#q")
    while explorer.watched.evaluate("document.querySelector('#app').contains(document.activeElement)"):
        found.append(
            explorer.watched.evaluate("document.activeElement.id || document.activeElement.outerHTML.slice(0, 60)")
        )
        explorer.page.keyboard.press("Tab")
        assert len(found) < 60
    return found


def test_tab_stops_are_few_however_many_series_there_are(explorer: Explorer) -> None:
    explorer.show([*OPERATORS, NOISY, RESNET])
    found = stops(explorer)
    assert found.count("chart") == 1
    assert len(found) <= 30
    explorer.page.focus("#list input")
    first = explorer.watched.evaluate("document.activeElement.closest('li').textContent")
    explorer.page.keyboard.press("ArrowDown")
    assert explorer.watched.evaluate("document.activeElement.closest('li').textContent") != first
    explorer.page.keyboard.press("Space")
    explorer.page.wait_for_function("() => document.querySelectorAll('#legend li').length !== 5")
    assert explorer.watched.evaluate("document.activeElement.matches('#list input')"), "the list keeps the focus"


def test_the_keys_go_on_where_there_are_fewer_series(explorer: Explorer) -> None:
    explorer.show([*OPERATORS, NOISY])
    explorer.page.focus("#chart")
    explorer.page.keyboard.press("End")
    for _ in OPERATORS:
        explorer.page.keyboard.press("ArrowDown")
    explorer.page.wait_for_selector(f".card-name:has-text('op.{planted.NOISY}')")
    explorer.page.click("#legend li:last-child button")
    explorer.page.wait_for_function("() => document.querySelectorAll('#legend li').length === 3")
    assert len(explorer.walk()) == len(planted.nights())


def test_a_mean_can_be_kept_and_linked_to(explorer: Explorer) -> None:
    explorer.show(OPERATORS, group="all")
    explorer.page.focus("#chart")
    explorer.page.keyboard.press("End")
    explorer.page.wait_for_selector("#card:visible")
    explorer.page.keyboard.press("Enter")
    explorer.page.wait_for_selector("#card.is-pinned")
    assert f"at=mean%20all@{stamp_of(planted.TONIGHT)}" in explorer.page.url
    assert explorer.watched.text("#card .card-name").startswith("all: mean of 3")
    assert explorer.texts("#card .card-links a") == ["This night"]


COVERED = """async () => {
  const chart = document.querySelector("#chart"), card = document.querySelector("#card"), dots = [], cards = [];
  const press = (key) => chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  press("End");
  while (card.hidden) await new Promise((done) => setTimeout(done, 10));
  for (let key = "Home", at = 0; at < 37; at += 1, key = "ArrowRight") {
    press(key);
    await new Promise((done) => setTimeout(done, 0));
    const dot = document.querySelector(".chart-dot").getBoundingClientRect();
    dots.push([dot.left + dot.width / 2, dot.top + dot.height / 2]);
    cards.push(card.getBoundingClientRect());
  }
  const inside = ([x, y], box) => x > box.left && x < box.right && y > box.top && y < box.bottom;
  return cards.filter((box) => box.width < 100 || dots.some((dot) => inside(dot, box))).length;
}"""


@pytest.mark.parametrize("width", [1440, 800, 375])
def test_no_card_covers_a_point_of_the_line_that_it_is_about(explorer: Explorer, width: int) -> None:
    explorer.page.set_viewport_size({"width": width, "height": 800})
    for names in ([RESNET], [f"operators op.{planted.OLDER[0]}"], [NOISY, *OPERATORS]):
        explorer.show(names)
        assert len(planted.nights()) == 37
        assert explorer.watched.evaluate(f"({COVERED})()") == 0, names
