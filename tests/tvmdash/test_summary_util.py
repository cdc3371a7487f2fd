from __future__ import annotations

import math

import pytest

from tests.golden_files import Golden
from tvmdash import summary_util
from tvmdash.errors import DashboardError
from tvmdash.summary_util import Failure, Measured, Ratio, Section, SectionKind, Summary, default_summary


def test_a_geometric_mean_ratio_is_above_one_where_after_is_smaller() -> None:
    ratio = summary_util.geometric_mean_ratio([(2.0, 1.0), (8.0, 1.0)])
    assert ratio.value == pytest.approx(4.0)
    assert ratio.n == 2


def test_the_interval_is_students_t_on_the_logarithms() -> None:
    # log ratios 0.1, 0.2, 0.3: mean 0.2, standard error 0.1/sqrt(3), t(2) = 4.3027
    ratio = summary_util.geometric_mean_ratio([(math.exp(x), 1.0) for x in (0.1, 0.2, 0.3)])
    reach = 4.302653 * 0.1 / math.sqrt(3)
    assert ratio.low == pytest.approx(math.exp(0.2 - reach), rel=1e-5)
    assert ratio.high == pytest.approx(math.exp(0.2 + reach), rel=1e-5)


@pytest.mark.parametrize(("count", "t"), [(2, 12.7062), (4, 3.1824), (5, 2.7764), (11, 2.2281), (31, 2.0423)])
def test_the_interval_has_the_width_that_tables_give(count: int, t: float) -> None:
    logs = [0.01 * (-1) ** i for i in range(count)]
    mean = sum(logs) / count
    error = math.sqrt(sum((x - mean) ** 2 for x in logs) / (count - 1) / count)
    ratio = summary_util.geometric_mean_ratio([(math.exp(x), 1.0) for x in logs])
    assert ratio.high is not None
    assert (math.log(ratio.high) - mean) / error == pytest.approx(t, rel=0.002)


def test_one_pair_has_no_interval() -> None:
    ratio = summary_util.geometric_mean_ratio([(1.0, 0.5)])
    assert ratio == Ratio(math.exp(math.log(2.0)), None, None, 1)


@pytest.mark.parametrize("pair", [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_a_pair_without_a_ratio_is_refused_with_its_place(pair: tuple[float, float]) -> None:
    with pytest.raises(DashboardError, match="pair 1"):
        summary_util.geometric_mean_ratio([(1.0, 1.0), pair])


def test_no_pairs_are_refused() -> None:
    with pytest.raises(DashboardError, match="no pairs"):
        summary_util.geometric_mean_ratio([])


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (Ratio(1.23, 1.18, 1.29, 5), "1.23x faster (1.18 to 1.29, 5 workloads)"),
        (Ratio(0.5, 0.4, 0.8, 3), "2.00x slower (1.25 to 2.50, 3 workloads)"),
        (Ratio(1.02, 0.97, 1.08, 4), "1.02x faster (0.97 to 1.08, 4 workloads, possibly no difference)"),
        (Ratio(270.4, None, None, 1), "270x faster (1 workload)"),
    ],
)
def test_ratios_in_words(ratio: Ratio, said: str) -> None:
    assert summary_util.format_ratio(ratio) == said


@pytest.mark.parametrize(
    ("old", "new", "lower_is_better", "said"),
    [
        (10.0, 11.24, True, "up 12.4 % (worse), 10.0 ms to 11.2 ms"),
        (10.0, 5.0, True, "down 50.0 % (better), 10.0 ms to 5.00 ms"),
        (10.0, 5.0, False, "down 50.0 % (worse), 10.0 ms to 5.00 ms"),
        (10.0, 30.0, None, "up 200 %, 10.0 ms to 30.0 ms"),
        (10.0, 10.001, True, "unchanged, 10.0 ms to 10.0 ms"),
        (0.0, 1.0, True, "up from 0 (worse), 0 ms to 1.00 ms"),
        (0.0, 0.0, True, "unchanged, 0 ms to 0 ms"),
    ],
)
def test_changes_in_words(old: float, new: float, lower_is_better: bool | None, said: str) -> None:
    assert summary_util.format_percent_change(old, new, "ms", lower_is_better=lower_is_better) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.25, "0.25 s"),
        (42, "42 s"),
        (59.7, "1 min"),
        (312, "5 min 12 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_durations_in_words(seconds: float, said: str) -> None:
    assert summary_util.format_duration(seconds) == said


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0 bytes"), (512, "512 bytes"), (36e3, "36.0 kB"), (999_600, "1.00 MB")]
)
def test_sizes_in_words(size: float, said: str) -> None:
    assert summary_util.format_bytes(size) == said


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.105, "ms", "0.105 ms"),
        (12.1, "ms", "12.1 ms"),
        (1743.0, "ms", "1.74 s"),
        (0.00035, "ms", "0.350 µs"),
        (5, "", "5.00"),
        (36e3, "bytes", "36.0 kB"),
    ],
)
def test_quantities_in_words(value: float, unit: str, said: str) -> None:
    assert summary_util.format_quantity(value, unit) == said


@pytest.mark.parametrize(
    ("items", "said"), [("", ""), ("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcde", "a, b and 3 more")]
)
def test_lists_in_words(items: str, said: str) -> None:
    assert summary_util.format_list(list(items), 3 if len(items) <= 3 else 2) == said


def test_a_summary_survives_its_file() -> None:
    summary = Summary("relax_opt", "12 points measured.")
    assert summary_util.parse_summary(summary.to_json(), "summary.json") == summary


def a_night() -> Summary:
    points = [
        Measured("a, tvm", 2.0, 1.0, "ms", workload="a", configuration="tvm"),
        Measured("a, torch", 1.0, 1.0, "ms", workload="a", configuration="torch"),
    ]
    return default_summary("night", points, [Failure("b", "no")], engines=["- TVM against torch"], more=["- more"])


def test_a_summary_says_the_same_in_sections_with_numbers_and_names() -> None:
    summary = a_night()
    assert summary.value.split("\n") == [line for section in summary.sections for line in section.lines]
    told = {section.kind: (dict(section.numbers), section.names) for section in summary.sections}
    assert told == {
        SectionKind.FAILED: ({"failed": 1}, ("b",)),
        SectionKind.MEASURED: ({"measured": 2}, ()),
        SectionKind.ENGINES: ({}, ()),
        SectionKind.OTHER: ({}, ()),
        SectionKind.EXTREMES: ({}, ("a",)),
    }
    assert summary_util.parse_summary(summary.to_json(), "summary.json") == summary


def test_a_section_is_left_out_by_its_kind_whatever_its_words() -> None:
    usual = a_night()
    sections = [Section(part.kind, tuple(f"#{part.kind}#" for _ in part.lines)) for part in usual.sections]
    told = Summary.of_sections("t", sections).without(SectionKind.EXTREMES, SectionKind.OTHER)
    assert told.value == "#failed#\n#measured#\n#engines#"
    more = told.with_lines(["mine"], before=SectionKind.ENGINES).with_lines(["last"])
    assert more.value == "#failed#\n#measured#\nmine\n#engines#\nlast"


def test_a_summary_of_text_alone_keeps_it_and_takes_lines() -> None:
    plain = Summary("t", "fastest of all: x")
    assert plain.to_json() == {"title": "t", "value": "fastest of all: x"}
    assert plain.without(SectionKind.EXTREMES).value == plain.value
    assert plain.with_lines(["y"]).value == "fastest of all: x\ny"


def test_a_section_of_a_later_kind_is_read_as_any_other() -> None:
    value = {"title": "t", "value": "v", "sections": [{"kind": "weather", "lines": ["v"]}]}
    assert summary_util.parse_summary(value, "s").sections == (Section(SectionKind.OTHER, ("v",)),)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([], r"\$: "),
        ({"title": "t"}, "value"),
        ({"title": 1, "value": ""}, r"\$\.title"),
        ({"title": "", "value": ""}, r"\$\.title"),
        ({"title": "t", "value": "v" * 5000}, r"\$\.value"),
        ({"title": "t", "value": "v", "more": 1}, "more"),
        ({"title": "t", "value": "v", "sections": [{"kind": "failed"}]}, r"\$\.sections\[0\]"),
        ({"title": "t", "value": "v", "sections": [{"kind": "x", "lines": [1]}]}, r"\$\.sections\[0\]"),
    ],
)
def test_a_wrong_summary_is_refused_with_file_and_place(value: object, place: str) -> None:
    with pytest.raises(DashboardError, match=rf"(?s)^summary/a/summary\.json: .*{place}"):
        summary_util.parse_summary(value, "summary/a/summary.json")


def point(label: str, value: float, previous: float | None) -> Measured:
    return Measured(label, value, previous, "ms")


CONFIGURED = [
    Measured(f"mlp {c}", v, None, "ms", True, "mlp", c) for c, v in (("O0", 31.0), ("O1", 12.0), ("O2", 12.5))
]
MOVED = [point("a", 9.0, 10.0), point("b", 12.0, 10.0), point("c", 10.1, 10.0), point("d", 3.0, None)]
FAILED = Failure("vgg", "out of memory.")


def test_messages(golden: Golden) -> None:
    summaries = {
        "a failure": default_summary("t", [point("mlp", 1.0, 1.0)], [FAILED]),
        "other values than before": default_summary("t", MOVED),
        "configurations": default_summary("t", CONFIGURED),
        "an empty night": default_summary("t", []),
    }
    golden.messages("summaries", [(name, summary.value) for name, summary in summaries.items()])


def test_failures_come_first_with_their_reasons() -> None:
    first, second = default_summary("t", [point("mlp", 1.0, 1.0)], [FAILED]).value.splitlines()[:2]
    assert "vgg: out of memory." in first
    assert "1 point" in second


def test_whether_a_value_changed_is_left_to_the_nights_verdict() -> None:
    summary = default_summary("t", MOVED, threshold_percent=1.0)
    assert summary.value == "4 points measured."
    assert SectionKind.CHANGES not in {section.kind for section in summary.sections}


def test_the_fastest_and_slowest_configuration_of_each_workload_are_named() -> None:
    assert "fastest O1 (12.0 ms)" in default_summary("t", CONFIGURED).value


def test_a_default_summary_always_fits_its_file() -> None:
    name = "数 $<&>\n" * 500
    points = [Measured(f"{i}{name}", i + 1.0, 1e-3, "ms", True, f"{i % 30}{name}", f"{i}{name}") for i in range(500)]
    default_summary(name, points, [Failure(name, name)] * 50).to_json()
    default_summary("", [], []).to_json()
