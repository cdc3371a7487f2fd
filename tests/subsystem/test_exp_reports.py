"""What the experiments' message says, and that nothing costs the night its report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard import homes
from tests.golden_files import Golden
from tests.slack import server
from tests.slack.server import CHANNEL, TOKEN, Fault, State
from tests.subsystem import slack_homes
from tests.subsystem.slack_homes import BLOCKED, FAILED, STAMP, SlackHome, job, night
from tvmdash.dashboard_info import MissingBackup, Night, StepReason

NAME = "exp_reports"


@pytest.fixture
def home(tmp_path: Path) -> SlackHome:
    return SlackHome(tmp_path)


@pytest.fixture
def state() -> Iterator[State]:
    with server.slack_server() as started:
        yield started
    assert not started.violations


def first_line(text: str) -> str:
    return text.splitlines()[0]


FULL = "/backup: the disk is full."
BROKEN = job("rnn", FAILED, title="RNNs", at="analyze", message="run out of <memory>", log_tail="one\ntwo & three\n")
HALF = slack_homes.JobResult("experiment", "a", "CNNs", "", job("a").steps[:2])
NIGHTS: dict[str, Night] = {
    "all ok": night(job("a"), job("b")),
    "one ok": night(job("a", title="CNNs")),
    "nothing ran": night(),
    "one failed, one did not run": night(
        job("a", title="CNNs"), job("b", FAILED, title="LSTM"), job("c", BLOCKED, title="GRU")
    ),
    "many failed": night(*(job(str(n), FAILED) for n in range(9))),
    "blocked": night(job("a", BLOCKED), job("b")),
    "no backup before": night(job("a"), job("b"), missing_backups=(MissingBackup("before", FULL),)),
    "no backup": night(
        job("a", FAILED),
        missing_backups=(MissingBackup("before", FULL), MissingBackup("after", FULL)),
        state="complete",
    ),
    "stopped early": night(HALF, state="interrupted"),
    "a failure with its tail": night(BROKEN),
    "a note": night(job("a"), notes=("The disk is nearly full",)),
}


def test_messages(home: SlackHome, golden: Golden) -> None:
    home.configure(website_url="https://bench.example.org/tvm/")
    home.notify("experiment", "rnn", "U012ABCDEF", "@bob", 7)
    golden.messages("exp_reports", [(name, home.run(NAME, each).text) for name, each in NIGHTS.items()])


def test_the_first_line_names_what_failed_and_the_next_counts_what_is_well(home: SlackHome) -> None:
    text = home.run(NAME, NIGHTS["one failed, one did not run"]).text
    assert first_line(text) == "⚠️ LSTM failed"
    assert "\n• GRU did not run; 1 of 3" in text


@pytest.mark.parametrize(
    ("name", "icon"),
    [("all ok", "✅"), ("one ok", "✅"), ("nothing ran", "❔"), ("many failed", "🔴"), ("blocked", "⚠️")],
)
def test_the_verdict_of_a_night(home: SlackHome, name: str, icon: str) -> None:
    assert first_line(home.run(NAME, NIGHTS[name]).text).split()[0] == icon


@pytest.mark.parametrize(("name", "icon"), [("no backup before", "⚠️"), ("no backup", "🔴")])
def test_a_missing_backup_is_in_the_first_line(home: SlackHome, name: str, icon: str) -> None:
    text = home.run(NAME, NIGHTS[name]).text
    assert text.split()[0] == icon
    assert "ackup" in text.partition("\n\n")[0] + text.split("\n\n")[2]


def test_an_experiment_that_is_through_half_its_stages_is_not_told_as_well(home: SlackHome) -> None:
    done = home.run(NAME, NIGHTS["stopped early"])
    assert "was stopped early" in first_line(done.text)
    assert "0 of 1" in done.text
    assert "stage: run" in done.text


def test_a_failure_is_told_with_stage_time_reason_tail_and_whom_it_concerns(home: SlackHome) -> None:
    home.notify("experiment", "rnn", "U012ABCDEF", "@bob", 7)
    text = home.run(NAME, NIGHTS["a failure with its tail"]).text
    for part in ("analyze", "1 min 2 s", "run out of <memory>\none\ntwo & three\n", "cc @U012ABCDEF"):
        assert part in text
    assert "rnn: $.notify: '@bob'" in text


def test_failures_come_before_blocked_ones_before_summaries(home: SlackHome) -> None:
    jobs = [job("a", title="Apple"), job("b", BLOCKED, title="Beet"), job("c", FAILED, title="Corn")]
    text = home.run(NAME, night(*jobs)).text.partition("\n❌")[2]
    assert text.index("Corn") < text.index("Beet") < text.index("Apple")


def test_what_is_blocked_by_the_same_is_told_once(home: SlackHome) -> None:
    cause = {"reason": StepReason.NO_TVM, "subject": "latest from pypi"}
    jobs = [job(name, BLOCKED, message=f"no TVM to measure: the index is down ({name})", **cause) for name in "abc"]
    notes = ("#1# the index is down", "The disk is nearly full")
    text = home.run(NAME, night(*jobs, artifacts=(), notes=notes, told_notes=(0,))).text
    assert text.count("the index is down") == 1
    assert "The disk is nearly full" in text
    assert "a, b and c did not run" in text
    assert "no TVM" in text.splitlines()[2]


def test_what_the_night_noted_is_told(home: SlackHome) -> None:
    text = home.run(NAME, NIGHTS["a note"]).text
    assert any(line.startswith("⚠️") and "disk" in line for line in text.splitlines())


def test_summaries_of_tonight_are_told_in_short_and_old_ones_are_not(home: SlackHome) -> None:
    home.summary("new", "12 points measured.\n" + "\n".join(f"- line {n} " + "x" * 90 for n in range(20)))
    home.summary("old", "of last week", stamp="20261114T031500Z")
    text = home.run(NAME, night(job("new"), job("old"))).text
    assert "measured.\n- line 0" in text
    assert "… and 17 more lines" in text
    assert "of last week" not in text
    assert "no summary tonight" in text


def telemetry(home: SlackHome, abnormal: object, stamp: str = slack_homes.STAMP) -> None:
    graph = {"file": "graphs/a.svg", "alt": "clocks"}
    rest = {"readings": 9, "ranges": {}, "outliers": [], "outliers_in_all": 0, "graph": graph}
    runs = [{"experiment": "resnet", "abnormal": abnormal, **rest}, {"experiment": "lstm", "abnormal": [], **rest}]
    slack_homes.write(home.home.output("telemetry") / "page.json", {"stamp": stamp, "runs": runs})


def test_an_experiment_whose_run_the_machine_disturbed_is_told_with_it(home: SlackHome) -> None:
    tonight = night(job("resnet"), job("lstm"))
    for name in ("resnet", "lstm"):
        home.summary(name, "1.5 times as fast")
    telemetry(home, ["Other programs kept 2.1 cores busy.", "The clock fell."])
    text = home.run(NAME, tonight).text
    words = "Possibly disturbed during the measurement: Other programs kept 2.1 cores busy. The clock fell."
    assert f"⚠️ resnet\n{words}\n1.5 times as fast" in text
    assert "✅ lstm\n1.5 times as fast" in text
    telemetry(home, ["The clock fell."], stamp="20261120T031500Z")
    assert "disturbed" not in home.run(NAME, tonight).text, "that was another night"


@pytest.mark.parametrize(
    "page", ["", "[]", '{"stamp": "20261121T031500Z", "runs": [{"experiment": 1}]}', '{"runs": 3}']
)
def test_whatever_telemetry_left_the_experiments_are_told(home: SlackHome, page: str) -> None:
    telemetry(home, [])
    (home.home.output("telemetry") / "page.json").write_text(page)
    assert "✅ resnet" in home.run(NAME, night(job("resnet"))).text


def test_the_night_its_tvm_and_the_website_stand_under_the_verdict(home: SlackHome) -> None:
    home.configure(website_url="https://bench.example.org/tvm/")
    line = home.run(NAME, night(job("a"))).text.splitlines()[2]
    for part in (
        "2026-11-21",
        "0.27.0.post1 (7b5acb32b)",
        f"(https://bench.example.org/tvm/nights/{STAMP}.html)",
    ):
        assert part in line


def test_without_a_token_it_works_and_says_so(home: SlackHome) -> None:
    done = home.run_script(NAME, night(job("a")))
    assert (done.code, done.success) == (0, True)
    assert "No Slack token" in done.report
    assert "No Slack token" in done.log


@pytest.mark.parametrize("name", ["<!channel>", "<@U012ABCDEF>", "a*b_c`d~e", "x" * 5000, "\u202egnp", "a\nb", "&amp;"])
def test_no_name_or_word_of_an_experiment_can_ping_or_break_the_message(
    home: SlackHome, state: State, name: str
) -> None:
    home.token(TOKEN)
    home.summary("good", name * 3)
    bad = job("bad", FAILED, title=name, message=name, log_tail=f"{name}\n```{name}")
    tonight = night(bad, job("good", title=name), job("c", BLOCKED, title=name, message=name), notes=(name,))
    done = home.run(NAME, tonight, slack=state.url, channel=CHANNEL)
    assert done.code == 0, done.log
    (message,) = state.channel()
    assert not message.pings()


def test_a_night_of_hundreds_of_failures_fits_into_one_message_that_still_pings_everybody(
    home: SlackHome, state: State
) -> None:
    home.token(TOKEN)
    jobs = [job(f"e{n:03d}", FAILED, message="why " * 200, log_tail="tail\n" * 900) for n in range(300)]
    home.notify("experiment", "e000", "U0FIRST001")
    home.notify("experiment", "e299", "U0LAST0001")
    done = home.run(NAME, night(*jobs), slack=state.url, channel=CHANNEL)
    assert done.code == 0, done.log
    (message,) = state.channel()
    assert message.pings() == ["<@U0FIRST001>", "<@U0LAST0001>"]
    assert "more omitted here" in message.markup()


def test_with_a_bot_token_pngs_stand_in_the_thread(home: SlackHome, state: State) -> None:
    home.token(TOKEN)
    for name in ("a", "b"):
        home.graph(name, "tonight.png")
        home.graph(name, "tonight.svg")
        home.graph(name, "later.png")
    done = home.run(NAME, night(job("a"), job("b")), slack=state.url, channel=CHANNEL, graphs=3)
    assert [known["filename"] for known in state.files.values()] == ["a-tonight.png", "b-tonight.png", "a-later.png"]
    assert {known["in"] for known in state.files.values()} == {state.channel()[0].ts}
    assert "3 graphs" in done.report


def test_svgs_are_linked_where_there_is_a_website_and_uploaded_where_there_is_none(
    home: SlackHome, state: State
) -> None:
    home.token(TOKEN)
    home.graph("a", "tonight.svg")
    home.configure(website_url="https://bench.example.org")
    home.run(NAME, night(job("a")), slack=state.url, channel=CHANNEL)
    assert not state.files
    assert "<https://bench.example.org/index.html#experiments|" in state.thread()[0].markup()
    home.configure()
    home.run(NAME, night(job("a"), stamp="20261122T031500Z"), slack=state.url, channel=CHANNEL)
    assert not state.files, "the graph is of another night"
    home.graph("a", "tonight.svg", stamp="20261122T031500Z")
    home.run(NAME, night(job("a"), stamp="20261122T031500Z"), slack=state.url, channel=CHANNEL)
    assert [known["filename"] for known in state.files.values()] == ["a-tonight.svg"]


def test_a_graph_that_links_out_of_its_folder_is_not_uploaded(home: SlackHome, state: State) -> None:
    home.token(TOKEN)
    home.graph("a", "tonight.png")
    (home.home.graph("a") / "stolen.png").symlink_to("/etc/passwd")
    home.run(NAME, night(job("a")), slack=state.url, channel=CHANNEL)
    assert [known["filename"] for known in state.files.values()] == ["a-tonight.png"]


def test_a_slack_that_is_down_fails_nothing_and_the_message_goes_out_the_next_night(
    home: SlackHome, state: State
) -> None:
    home.token(TOKEN)
    state.fail("*", *[Fault("status", status=503)] * 20)
    done = home.run(NAME, night(job("a")), slack=state.url, channel=CHANNEL, slack_seconds=1)
    assert (done.code, done.success) == (0, True)
    assert "is queued in outbox.json" in done.report
    state.faults.clear()
    home.run(NAME, night(job("a"), stamp="20261122T031500Z"), slack=state.url, channel=CHANNEL)
    assert len(state.channel()) == 2


def test_a_refused_token_fails_the_job_in_one_sentence_without_the_token(home: SlackHome, state: State) -> None:
    home.token("xoxb-0000000000-wrongwrong")
    done = home.run_script(NAME, night(job("a")), slack=state.url, channel=CHANNEL)
    assert (done.code, done.success) == (1, False)
    assert "invalid_auth" in done.message
    everything = done.log + "".join(path.read_text() for path in done.output.iterdir() if path.is_file())
    assert "wrongwrong" not in everything
    assert first_line(done.text) == "✅ a ok"


def test_a_token_file_that_others_can_read_is_refused_with_the_remedy(home: SlackHome) -> None:
    path = home.token(TOKEN, mode=0o644)
    done = home.run_script(NAME, night(job("a")), channel=CHANNEL)
    assert not done.success
    assert f"chmod 600 {path}" in done.message
    assert TOKEN not in done.log + done.message


@pytest.mark.parametrize("place", ["config/config.json", "config/subsystem/exp_reports/config.json"])
def test_a_token_in_a_config_is_refused_with_the_place(home: SlackHome, place: str) -> None:
    env = {"SLACK_BOT_TOKEN": TOKEN}
    home.configure(env=env if place == "config/config.json" else {})
    done = home.run(NAME, night(job("a")), channel=CHANNEL, env={} if place == "config/config.json" else env)
    assert done.message.startswith(f"{place}: $.env.SLACK_BOT_TOKEN: ")
    assert TOKEN not in done.log + done.message


def test_a_token_without_a_channel_is_refused_with_the_place(home: SlackHome) -> None:
    home.token(TOKEN)
    done = home.run(NAME, night(job("a")))
    assert "exp_reports/config.json: $.channel:" in done.message


def test_a_real_night_tells_slack_of_a_rejected_experiment_and_a_failed_subsystem(tmp_path: Path, state: State) -> None:
    made = homes.make_home(tmp_path, tmp_path / "no TVM is needed")
    made.experiment("typo", config={"title": "Typo", "repaet": 3, "notify": ["U012ABCDEF"]})
    (made.code / "experiments" / "typo" / "fields.json").write_text(
        '{"repeat": {"type": "int", "default": 3, "doc": "n"}}'
    )
    made.subsystem("broken", run="#!/bin/sh\necho out of ideas\nexit 3\n")
    for name, priority in ((NAME, -50), ("subsys_reporter", -100)):
        shutil.copytree(slack_homes.REPO / "subsystem" / name, made.code / "subsystem" / name)
        config = {"channel": CHANNEL, "token_file": str(tmp_path / "token"), "env": {"SLACK_API_URL": state.url}}
        homes.write(
            made.home.config("subsystem", name) / "config.json", {"active": True, "priority": priority, **config}
        )
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    done = made.run()
    assert done.code == 1, done.output
    (message,) = state.channel()
    assert message.blocks[0]["text"]["text"].startswith("🔴 typo failed")
    assert "Did you mean 'repeat'?" in message.markup()
    assert message.pings() == ["<@U012ABCDEF>"]
    assert "out of ideas" in message.markup(), "the subsystems' section was added"
    assert (message.edits, state.thread()) == (1, [])
    leaked = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name != "token" and TOKEN.encode() in path.read_bytes()
    ]
    assert not leaked
    assert TOKEN not in done.output
