"""Every sentence about a night whose truth is planted, checked against it."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.cli.status import summarize_night
from tests.dashboard.homes import environment
from tests.golden_files import Golden
from tests.subsystem import scripts
from tests.subsystem.stat_alerts.alert_homes import stamp_of
from tests.subsystem.website import planted
from tests.subsystem.website.planted import TONIGHT, Planted
from tests.subsystem.website.sites import Page
from tvmdash import common
from tvmdash.incidents import command
from tvmdash.notify.config import Owner, Route, RouteKind, Routing
from tvmdash.notify.delivery import Outbox
from tvmdash.notify.message import Message
from tvmdash.notify.night import make_opening
from tvmdash.notify.plan import Situation, make_plan
from tvmdash.notify.state import RouteState, RouteStates, write_states
from tvmdash.notify.text import describe_new
from tvmdash.series import store
from tvmdash.verdict import Absence, Level
from tvmdash.verdict.account import make_account

website = scripts.load("website")
Links, SiteContext = website.Links, website.publishing.SiteContext


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return planted.make(tmp_path_factory.mktemp("planted"), judged_from=28)


def first_page(home: Planted) -> Page:
    return home.site.page("index.html")


def test_messages(home: Planted, golden: Golden) -> None:
    pages = ("index.html", "alerts.html", f"nights/{stamp_of(TONIGHT)}.html")
    golden.messages("website_planted", [(page, home.site.page(page).list_sentences()) for page in pages])


def test_the_headline_names_the_models_how_far_they_moved_and_between_which_commits(home: Planted) -> None:
    verdict = home.verdicts[TONIGHT]
    assert verdict.level is Level.REGRESSION
    first, *rest = verdict.headline.split("; ")
    before, after = planted.commit_of(TONIGHT - 1)[:9], planted.commit_of(TONIGHT)[:9]
    assert first.endswith(f" % faster since {before}..{after}")
    slower, faster = first.partition("resnet18 and 2 others ")[2].split(", softmax ")
    low, high = (float(number) for number in slower.removesuffix(" % slower").split(" to "))
    assert (round(low), round(high)) == (7, 8)
    assert 14 < float(faster.split(" %")[0]) < 16
    assert rest[0].startswith("12 of 28 series")
    assert [(missing.experiment, missing.why) for missing in verdict.missing] == [
        ("cnn_engines", Absence.FAILED),
        ("pass_comparison", Absence.BLOCKED),
        ("rnn_comp", Absence.NOT_RUN),
    ]


def test_the_night_before_says_what_is_open_and_nothing_of_what_came_later(home: Planted) -> None:
    verdict = home.verdicts[TONIGHT - 1]
    assert (verdict.level, verdict.new, len(verdict.open)) == (Level.REGRESSION, (), 1)
    assert "op.conv2d_56 run time +15." in verdict.headline
    assert "resnet18" not in verdict.headline
    assert [(missing.experiment, missing.series) for missing in verdict.missing] == [("rnn_comp", 2)]


def rows(page: Page, kind: str = "li") -> list[str]:
    return [" ".join(text.split()) for text in page.texts[kind]]


def test_the_first_page_says_once_an_experiment_what_has_no_value_above_the_series_that_have_one(home: Planted) -> None:
    page = first_page(home)
    lines = [line for line in rows(page) if line.startswith("∅") and ":" in line]
    assert [line.partition(":")[0] for line in lines] == ["∅cnn_engines", "∅pass_comparison", "∅rnn_comp"]
    assert not [row for row in rows(page, "tr") if "lstm" in row]
    html = page.path.read_text(encoding="utf-8")
    assert html.index('id="hero"') < html.index('id="missing"') < html.index('id="failures"')
    assert "libonnxruntime.so.1:" in page.words


def test_each_row_of_the_plot_is_where_its_series_was_planted(home: Planted) -> None:
    told = {row.split()[0]: row.split()[1:3] for row in rows(first_page(home), "tr") if row[:1] in "✖★"}
    moved = {f"✖cnn.{name}": factor - 1 for name, factor in planted.SLOWER.items()}
    moved |= {"★op.softmax": planted.FASTER[1] - 1, "✖op.conv2d_56": planted.OLDER[1] - 1}
    assert told.keys() == moved.keys()
    assert next(iter(told)) == "✖cnn.resnet18", "what is new tonight comes before what was open"
    for name, (number, unit) in told.items():
        assert unit == "%"
        assert abs(float(number.replace("−", "-")) - 100 * moved[name]) < 1.2


def test_the_page_of_an_incident_is_a_chain_up_to_the_passes_and_what_tvm_is_built_with(home: Planted) -> None:
    (path,) = home.site.folder.glob(f"incidents/{home.verdicts[TONIGHT].new[0]}.html")
    page = home.site.page(f"incidents/{path.name}")
    assert [" ".join(text.split()) for text in page.texts["h2"]] == [
        "How much", "Which operators", "Which passes", "Which commit", "What was said",
    ]  # fmt: skip
    gone = planted.PASSES_RUN[-1]
    assert page.texts["del"] == [gone]
    assert f"{gone} no longer runs; 2 passes ran on both nights." in rows(page, "p")
    (why,) = [text for text in rows(page, "p") if text.startswith("What changed: ")]
    assert why.startswith(f"What changed: {gone} no longer runs; {planted.SLOWER_OPERATOR} takes ")
    assert command.act([str(home.home.home.root), "explain", path.stem]).startswith(f"{why}\n\n")
    told = describe_new(command.ledger_of(home.home.home.root).find(path.stem), "", str(home.home.home.root))
    assert why in told.lines
    assert f"Not TVM\u2019s own: LLVM {planted.LLVM[0]} → {planted.LLVM[1]}" in rows(page, "p")
    operators = {row.split()[0]: row for row in rows(page, "tr")}
    assert planted.SLOWER_OPERATOR in operators
    assert "0 ms" in operators["unexplained"]


def test_what_is_new_tonight_stands_above_what_was_open(home: Planted) -> None:
    new, old = (rows(first_page(home), "h3"))[:2]
    assert "resnet18 and 2 others" in new
    assert "op.conv2d_56" in old


def test_an_incident_has_its_commits_with_their_addresses(home: Planted) -> None:
    page = first_page(home)
    links = {link.get("href", "") for link in page.all("a")}
    before, after = planted.commit_of(TONIGHT - 1), planted.commit_of(TONIGHT)
    assert f"https://github.com/apache/tvm/compare/{before}...{after}" in links
    for start, author, title, folder in planted.COMMITS:
        assert f"https://github.com/apache/tvm/commit/{planted.digits(start)}" in links
        assert f"{planted.digits(start)[:9]} {title} {author}, 2026-06-09; {folder}" in rows(page)
    night = home.site.page(f"nights/{planted.stamp_of(TONIGHT)}.html")
    assert f"TVM {before[:9]}..{after[:9]}, 4 commits" in rows(night, "p")


def test_the_next_commands_name_what_was_planted_and_are_ones_that_exist(home: Planted, tmp_path: Path) -> None:
    (new,) = home.verdicts[TONIGHT].new
    before, after = planted.commit_of(TONIGHT - 1), planted.commit_of(TONIGHT)
    commands = [text for text in rows(first_page(home), "dd") if text.startswith("python3 -m dashboard")]
    own = [command for command in commands if new in command or f"git:{after}" in command]
    (bisect,) = (command for command in own if " bisect " in command)
    assert " bisect HOME cnn_comp " in bisect
    assert bisect.endswith(f" --good git:{before} --bad git:{after} --incident {new}")
    verbs = {shlex.split(command)[3]: shlex.split(command)[3:] for command in commands}
    assert set(verbs) == {"bisect", "compare", "try", "explain", "reproduce", "incidents"}
    for words in verbs.values():
        parse(words, tmp_path)


def parse(words: list[str], place: Path) -> None:
    """Fail where the command line does not take the words; nothing is run, as there is no such home in `place`."""
    done = subprocess.run(
        [sys.executable, "-m", "dashboard", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        cwd=place,
    )
    assert "usage:" not in done.stderr, done.stderr
    assert "HOME" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("git@github.com:apache/tvm.git", f"https://github.com/apache/tvm/commit/{'a' * 40}"),
        ("https://user:secret@gitlab.com/a/b.git", f"https://gitlab.com/a/b/-/commit/{'a' * 40}"),
        ("/srv/tvm", ""),
        ("https://example.org/tvm", ""),
        ("javascript:alert(1)//github.com/a", ""),
    ],
)
def test_a_commits_address_is_that_of_its_remotes_host_and_holds_no_secret(remote: str, url: str) -> None:
    links = Links()
    assert links.of_commit(remote, "a" * 40) == url
    assert links.of_commit(remote, "x" * 40) == ""
    assert Links("https://tvm.example/{commit}").of_commit(remote, "abcdef1") == "https://tvm.example/abcdef1"


def test_an_incident_after_nights_without_a_value_has_the_commits_of_all_of_them(home: Planted) -> None:
    context = SiteContext(
        home.home.home, home.home.home.read_night(stamp_of(TONIGHT)), home.site.folder, common.utc_now()
    )
    found = context.new_between(stamp_of(TONIGHT - 3), stamp_of(TONIGHT), planted.commit_of(TONIGHT))
    assert [new.ends for new in found] == [
        (planted.commit_of(night - 1)[:9], planted.commit_of(night)[:9])
        for night in (TONIGHT, TONIGHT - 1, TONIGHT - 2)
    ]
    (one,) = context.new_between(stamp_of(TONIGHT - 1), stamp_of(TONIGHT), planted.commit_of(TONIGHT))
    assert one.count == len(planted.COMMITS)


def incident_page(home: Planted) -> Page:
    (path,) = (home.site.folder / "incidents").glob(f"i{stamp_of(TONIGHT)[:8]}-*.html")
    return home.site.page(f"incidents/{path.name}")


def test_the_page_of_an_incident_says_where_the_time_went(home: Planted) -> None:
    words = incident_page(home).words
    for network, speed in planted.SLOWER.items():
        before = planted.CNNS[network]
        assert f"cnn_comp cnn.{network} run time, operators: " in words
        assert f"{planted.SLOWER_OPERATOR} explains 100 %" in words
        assert f"\u2192 {before * speed:.1f} ms when profiled" in words
    assert "Not compared: operators," in words
    assert "fused_softmax 3.10 ms" in words


def percents(text: str) -> list[float]:
    return [float(each.replace("\u2212", "-")) for each in re.findall(r"[+\u2212]\d+(?:\.\d+)?(?= %| to )", text)]


def test_words_numbers_and_chart_of_an_incident_agree_and_are_what_was_planted(home: Planted) -> None:
    page = incident_page(home)
    name, factor = planted.FASTER
    true = {f"cnn_comp cnn.{network} run time": speed for network, speed in planted.SLOWER.items()}
    true |= {f"operators op.{name} run time": factor}
    for series, speed in true.items():
        (row,) = (text for text in rows(page, "tr") if text.startswith(f"{series} ") and "\u2192" in text)
        effect, low, high = percents(row)
        assert low <= 100 * (speed - 1) <= high, row
        spots = [title for title in page.texts["title"] if title.startswith(f"{series}, ")]
        *before, tonight = [(percents(spot) or [0.0])[-1] for spot in spots]
        assert tonight == effect, "the chart's last value is what is told"
        assert len(before) == 30
        assert max(map(abs, before)) < 1.5, "the machine's noise is in no level before"
    worse = sorted(percents(row)[0] for row in rows(page, "tr") if "\u2192" in row and "cnn_comp" in row)
    (heading,) = rows(page, "h1")
    assert f"{worse[0]:.1f} to {worse[-1]:.1f} % slower" in heading


def test_the_page_of_an_incident_draws_all_of_its_series_and_names_the_commit(home: Planted) -> None:
    page = incident_page(home)
    drawing = next(each for each in page.all("svg") if "night-chart" in (each["class"] or ""))
    assert "4 series" in (drawing["aria-label"] or "")
    circles = [title for title in page.texts["title"] if "2026-06-09" in title]
    assert len([title for title in circles if title.startswith("cnn_comp")]) == 3
    assert planted.commit_of(TONIGHT)[:9] in page.words
    assert "[Relax] Fold constants" in page.words


def test_both_traces_of_an_open_incident_are_there_to_be_opened(home: Planted) -> None:
    links = [link["href"] for link in incident_page(home).all("a") if "data-perfetto" in link]
    assert len(links) == 2
    for link, night in zip(links, (TONIGHT - 1, TONIGHT), strict=True):
        assert stamp_of(night) in (link or "")
        assert (home.site.folder / "incidents" / (link or "")).resolve().stat().st_size > 100


def test_pages_of_incidents_of_which_nothing_is_new_are_carried_over(home: Planted) -> None:
    pages = home.site.folder / "incidents"
    before = {path.name: path.stat().st_ino for path in pages.glob("*.html")}
    home.site.publish_here(stamp_of(TONIGHT))
    assert {path.name: path.stat().st_ino for path in pages.glob("*.html")} == before


def test_the_geometric_mean_moves_by_what_was_planted_and_not_with_the_machine(home: Planted) -> None:
    page = first_page(home)
    drawing = next(each for each in page.all("svg") if "night-chart" in (each["class"] or ""))
    assert "geometric mean" in (drawing["aria-label"] or "").lower()
    spots = [title for title in page.texts["title"] if title.startswith("Geometric mean")]
    assert len(spots) == len(planted.nights())
    changes = [float(spot.rsplit(": ", 1)[1].removesuffix(" %").replace("\u2212", "-")) for spot in spots]
    step = 100 * sum(math.log(speed) for speed in (*planted.SLOWER.values(), planted.FASTER[1])) / 16
    older = 100 * math.log(planted.OLDER[1]) / 16
    assert changes[-1] - changes[-2] == pytest.approx(step, abs=0.4)
    assert changes[-2] - changes[0] == pytest.approx(older, abs=0.4)
    marks = [link for link in page.all("a") if "incidents/i" in (link["href"] or "") and link.get("aria-label")]
    assert len({link["href"] for link in marks}) == 2


def test_the_list_of_nights_tells_an_experiment_that_vanished(home: Planted) -> None:
    listed = rows(home.site.page("nights/index.html"), "tr")
    telling = [row for row in listed if "Recurrent networks no longer ran" in row]
    assert len(telling) == 1
    assert telling[0].startswith("2026-06-05")


def messages_of(home: Planted, **route: frozenset[Level]) -> list[Message]:
    """What a route that is there for long is told after tonight."""
    told, site = Route("mail", RouteKind.EMAIL, **route), "https://bench.example.org/tvm"
    owner = Owner(experiment="cnn_*", name="CNN team", email=("ada@example.org",))
    ledger = command.ledger_of(home.home.home.root)
    account = make_account(home.home.home.read_night(stamp_of(TONIGHT)), home.verdicts[TONIGHT])
    output = home.home.home.output("routes")
    now = Situation(
        told, Routing({"mail": told}, (owner,), site), ledger, account, stamp_of(TONIGHT),
        str(home.home.home.root), output, Outbox(output / "mail.json", stamp_of(0)),
    )  # fmt: skip
    return [due.message for due in make_plan(now).due]


def test_a_message_says_what_was_planted_links_to_its_page_and_has_the_next_command(home: Planted) -> None:
    (message,) = messages_of(home)
    before, after = planted.commit_of(TONIGHT - 1), planted.commit_of(TONIGHT)
    assert message.title in home.verdicts[TONIGHT].headline
    assert (message.people, message.owners) == (("ada@example.org",), ("CNN team",))
    (item,) = message.items
    told = {line.split()[1]: line for line in item.lines[:4]}
    assert set(told) == {"cnn.resnet18", "cnn.resnet50", "cnn.mobilenet", "op.softmax"}
    for name, factor in {**planted.SLOWER, planted.FASTER[0]: planted.FASTER[1]}.items():
        line = next(line for workload, line in told.items() if workload.partition(".")[2] == name)
        found = re.search(
            r"run time is (\w+): .* ms, ([+−][\d.]+) % \(95 %: ([+−][\d.]+) % to ([+−][\d.]+) %\)\.$", line
        )
        assert found
        size, low, high = (float(found[at].replace("−", "-")) for at in (2, 3, 4))
        assert found[1] == ("slower" if factor > 1 else "faster")
        assert low < size < high
        assert abs(size - 100 * (factor - 1)) < 1
    assert [part for part in ("2026-06-09", after[:9], before[:9]) if part not in item.lines[-1]] == []
    page = item.address.removeprefix("https://bench.example.org/tvm/")
    assert message.title.split(" since ")[0] in " ".join(home.site.page(page).text.split())
    words = shlex.split(dict(item.commands)["Next"])
    assert words[3:5] == ["bisect", str(home.home.home.root)]
    assert words[7:] == ["--good", f"git:{before}", "--bad", f"git:{after}", "--incident", message.incident.id]  # type: ignore[union-attr]
    with store.open_for_reading(home.home.home.store_file, home.home.home.data(words[5]), words[5]) as opened:
        (series,) = [outline for outline in opened.outlines(words[5]) if outline.id == words[6]]
    assert (series.metric, series.labels["workload"]) == ("run_time", "cnn.resnet18")


def test_the_message_of_the_night_has_the_verdict_and_what_is_open_besides(home: Planted) -> None:
    (message,) = messages_of(home, at_once=frozenset(), digest=frozenset({Level.REGRESSION}))
    verdict = home.verdicts[TONIGHT]
    assert message.title == verdict.title
    first, failed, new, still = message.items
    assert first.lines[0] == f"{verdict.reasons[0]}."
    assert failed.title == "Failed"
    assert (home.site.folder / first.address.removeprefix("https://bench.example.org/tvm/")).is_file()
    assert new.title == f"New: {verdict.lead.partition(': ')[2]}"
    (line,) = still.lines
    assert "op.conv2d_56 run time +15." in line
    assert planted.commit_of(planted.OLDER_STEP)[:9] in line


def test_the_title_in_slack_is_a_whole_sentence(home: Planted) -> None:
    night = home.home.home.read_night(stamp_of(TONIGHT))
    title, parts = make_opening(home.home.home, night)
    assert title == f"🔴 {home.verdicts[TONIGHT].title}"
    assert home.verdicts[TONIGHT].reasons[0] in parts[0].markup


def test_commits_that_changed_code_come_before_those_beside_it(home: Planted) -> None:
    words = incident_page(home).words
    places = [words.index(title) for title in ("[Relax] Fold", "[TIR] Vectorize", "[Docs] Say", "[CI] Cache")]
    assert places == sorted(places)
    assert "2026-06-09; src/relax" in words


def test_a_route_that_does_not_work_is_told_on_the_page_of_alerts_and_by_status(home: Planted) -> None:
    root, output = home.home.home, home.home.home.output("routes")
    output.mkdir(parents=True, exist_ok=True)
    state = RouteState("mail", "email", waiting=2, fault="smtp.example.org rejected the login (535)")
    write_states(output, RouteStates(stamp_of(TONIGHT), (state,)))
    told = "Route mail (email) does not work: smtp.example.org rejected the login (535). 2 messages will be tried again"
    try:
        home.site.publish_here(stamp_of(TONIGHT))
        assert told in home.site.page("alerts.html").words
        assert told in summarize_night(root, root.read_night(stamp_of(TONIGHT)))
    finally:
        write_states(output, RouteStates(stamp_of(TONIGHT)))
        home.site.publish_here(stamp_of(TONIGHT))
    assert "does not work" not in home.site.page("alerts.html").words


def test_the_page_of_an_incident_leads_to_where_it_is_discussed(home: Planted) -> None:
    output = home.home.home.output("routes")
    output.mkdir(parents=True, exist_ok=True)
    (new,) = home.verdicts[TONIGHT].new
    address = "https://github.com/apache/tvm/issues/7"
    talks = ({new: address, "i20000101-00aa": f"{address}1"}, {new: "javascript:alert(1)"})
    states = tuple(RouteState(f"r{at}", "github", discussions=each) for at, each in enumerate(talks))
    write_states(output, RouteStates(stamp_of(TONIGHT), states))
    try:
        home.site.publish_here(stamp_of(TONIGHT))
        addresses = [link["href"] or "" for link in incident_page(home).all("a")]
        assert [each for each in addresses if "issues" in each or "script" in each] == [address]
    finally:
        write_states(output, RouteStates(stamp_of(TONIGHT)))
        home.site.publish_here(stamp_of(TONIGHT))
