"""The explorer over a home whose truth is planted, from disk: what it shows is what was measured."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from watching import Watched, opening

from tests.subsystem.stat_alerts.alert_homes import stamp_of
from tests.subsystem.website import planted
from tvmdash import common

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tvmdash.dashboard_info import Home


WALK = """() => {
  const chart = document.querySelector("#chart"), found = [];
  const texts = (name) => [...document.querySelectorAll(`#card ${name}`)].map((one) => one.textContent);
  for (let key = "Home"; ; key = "ArrowRight") {
    chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
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


@pytest.fixture
def explorer(chromium: Browser, planted_home: Home) -> Iterator[Explorer]:
    with opening(chromium, f"{planted_home.output('website').resolve().as_uri()}/") as watched:
        yield Explorer(planted_home, watched)


RESNET = "cnn_comp cnn.resnet18"


def gaps(places: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(places)]


def day_of(night: int) -> str:
    return f"{common.parse_stamp(stamp_of(night)):%-d %b %Y, %H:%M UTC}"


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


SCALE = """() => {
  const chart = document.querySelector("#chart"), press = (key) =>
    chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const dot = document.querySelector(".chart-dot"), height = dot.parentElement.clientHeight;
  const points = [];
  for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"]) {
    press(key);
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
    assert listed == f"{value:.2f} ms, +8.1 % from the level before"


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
