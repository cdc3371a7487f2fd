"""`watch`: it speaks once where nights do not run and once when they do again, on the routes that tell all."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.homes import Finished, make_home, script, write
from tests.github import server as github
from tests.slack import server as slack
from tests.webhook import server as webhook
from tvmdash import common
from tvmdash.common.files import lock
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, RUNNING, Night

_ENV = {name: os.environ[name] for name in ("PATH",)}


class Watching:
    """A home whose nights are due each hour, with a webhook, issues on GitHub and a channel of Slack."""

    def __init__(self, root: Path, hook: webhook.State, issues: github.State, channel: slack.State) -> None:
        self.made = make_home(root, root / "artifacts", schedule="0 * * * *", watch_grace_minutes=30)
        self.hook, self.issues, self.channel = hook, issues, channel
        self._root = root
        self.routes = {
            "hook": {"kind": "webhook", "url": hook.url, "secret_file": self._keep("hook", webhook.SECRET)},
            "issues": {
                "kind": "github", "repository": github.REPOSITORY, "secret_file": self._keep("token", github.TOKEN),
            },
            "theirs": {"kind": "webhook", "url": "http://127.0.0.1:9/", "secret_file": self._keep("x", webhook.SECRET)},
        }  # fmt: skip
        own = {"active": True, "channel": slack.CHANNEL, "token_file": self._keep("slack", slack.TOKEN)}
        write(self.made.home.config("subsystem", "stat_alerts") / "config.json", own)
        self.configure()

    def configure(self, **changes: object) -> None:
        owners = [{"experiment": "cnn_*", "email": ["ada@example.org"], "routes": ["theirs"]}]
        self.made.configure(routes=self.routes, owners=owners, **changes)

    def _keep(self, name: str, secret: str) -> str:
        path = self._root / "secrets" / name
        path.parent.mkdir(exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(f"{secret}\n")
        return str(path)

    def leave(self, hours_ago: float, state: str = COMPLETE) -> str:
        stamp = common.stamp_of(common.utc_now() - datetime.timedelta(hours=hours_ago))
        self.made.home.nights.mkdir(parents=True, exist_ok=True)
        common.write_json(self.made.home.night_file(stamp), Night(stamp, state).to_json())
        return stamp

    def watch(self, *options: str, **env: str) -> Finished:
        servers = {"GITHUB_API_URL": self.issues.url, "SLACK_API_URL": self.channel.url}
        return self.made.run_with({**_ENV, **servers, **env}, *options, verb="watch")

    @property
    def events(self) -> list[str]:
        return [body["event"] for body in self.hook.bodies]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Watching]:
    with contextlib.ExitStack() as opened:
        servers = [opened.enter_context(each) for each in (webhook.webhook(), github.serve(), slack.slack_server())]
        yield Watching(tmp_path, *servers)  # type: ignore[arg-type]
        assert not [fault for server in servers for fault in server.violations]


def test_a_quiet_spell_is_told_once_on_each_route_and_so_is_its_end(home: Watching) -> None:
    last = home.leave(72)
    first, second = home.watch(), home.watch()
    assert (first.code, second.code) == (1, 1)
    assert first.output.startswith(f"No night has completed since {common.parse_stamp(last):%Y-%m-%d %H:%M} UTC\n")
    assert "Schedule: 0 * * * * (schedule in its config)." in first.output
    assert second.output == ""
    (told,) = home.hook.bodies
    assert (told["event"], told["level"]) == ("quiet", "no_data")
    assert told["title"] == first.output.splitlines()[0]
    assert home.issues.issues[0]["title"] == told["title"]
    (posted,) = home.channel.channel()
    assert posted.text == told["title"]

    home.leave(0.001)
    back, after = home.watch(), home.watch()
    assert (back.code, back.output.splitlines()[0]) == (0, "Nights are running again")
    assert (after.code, after.output) == (0, "")
    assert home.events == ["quiet", "runs_again"]
    assert home.hook.bodies[1]["first"] == told["id"]
    (issue,) = home.issues.issues
    assert (issue["state"], issue["state_reason"]) == ("closed", "completed")
    assert " UTC is complete. Schedule: " in home.issues.comments_on(issue["number"])[0]
    assert [message.text for message in home.channel.channel()] == [told["title"], "Nights are running again"]


def test_a_night_that_was_killed_is_told_once_though_none_is_overdue(home: Watching) -> None:
    home.leave(0.4)
    killed = home.leave(0.1, RUNNING)
    first, second = home.watch(), home.watch()
    assert (first.code, second.code, second.output) == (1, 1, "")
    title, *rest = first.output.splitlines()
    assert title == f"The night of {common.parse_stamp(killed):%Y-%m-%d %H:%M} UTC was killed or lost power"
    assert rest[1].endswith("broke off. The next one saves what it had measured.")
    assert [body["title"] for body in home.hook.bodies] == [title]
    home.leave(0.001)
    assert home.watch().code == 0
    assert home.events == ["quiet", "runs_again"]


def test_a_start_that_is_refused_is_told_once_with_its_reason_until_a_night_begins(home: Watching) -> None:
    last = home.leave(0.4)
    home.configure(min_free_mb=1e12)
    assert home.made.run().code == 2
    first, second = home.watch(), home.watch()
    assert (first.code, second.code, second.output) == (1, 1, "")
    title, schedule, reason = first.output.splitlines()
    assert re.fullmatch(r"The night of 20\d\d-\d\d-\d\d \d\d:\d\d UTC could not begin", title)
    assert schedule == "Schedule: 0 * * * * (schedule in its config)."
    assert re.search(r"^The start at .* UTC was refused: .*: only \d+ MB free, less than min_free_mb = ", reason)
    assert [body["title"] for body in home.hook.bodies] == [title]
    status = home.made.run(verb="status")
    assert status.code == 1
    assert re.match(r"The start at .* UTC was refused: .* MB free", status.output)
    assert common.parse_stamp(last).strftime("%H:%M") in status.output or last in status.output
    assert "was refused: " in home.made.run(verb="doctor").output

    home.configure(min_free_mb=1)
    shutil.rmtree(home.made.home.config("subsystem", "stat_alerts"))
    home.made.subsystem()
    home.made.night()
    assert home.watch().output.startswith("Nights are running again\n")
    assert home.made.run(verb="status").code == 0
    assert home.events == ["quiet", "runs_again"]


def test_a_fault_in_a_config_refuses_a_start_and_hides_its_secrets(home: Watching) -> None:
    home.leave(0.4)
    home.configure(env={"DEPLOY_TOKEN": "abc-very-secret"}, heartbeat_style="abc-very-secret")
    assert home.made.run().code == 2
    told = home.watch()
    assert "was refused: " in told.output
    assert "$.heartbeat_style: '[hidden]' is " in told.output
    (note,) = home.made.home.root.glob("results/refused_start.txt")
    assert "abc-very-secret" not in note.read_text()
    note.write_text("{")
    assert home.watch().output.startswith("Nights are running again\n")
    note.unlink()
    note.mkdir()
    assert home.made.run().code == 2
    home.made.configure(env={}, heartbeat_style="auto")
    assert "refused_start.txt: could not be removed: Is a directory" in home.made.run().output
    assert home.watch().code == 0


def test_a_config_that_is_no_json_is_told_on_the_routes_that_the_last_night_had(home: Watching) -> None:
    shutil.rmtree(home.made.home.config("subsystem", "stat_alerts"))
    home.made.subsystem()
    home.made.night()
    config = home.made.home.config_file
    whole = config.read_text()
    assert (home.made.home.root / ".last_config.json").stat().st_mode & 0o777 == 0o600, "it may hold addresses"
    config.write_text(whole.replace(",", "", 1))
    assert home.made.run().code == 2
    first, second = home.watch(), home.watch()
    assert (first.code, second.code, second.output) == (1, 1, "")
    assert "was refused: " in first.output
    assert home.events == ["quiet"]
    assert "not JSON at line 1" in home.hook.bodies[0]["items"][0]["lines"][-1]
    config.write_text(whole)
    home.made.night()
    assert home.watch().code == 0
    assert home.events == ["quiet", "runs_again"]


def test_a_spell_that_ends_while_a_night_runs_does_not_say_that_one_is_complete(home: Watching) -> None:
    home.leave(0.4)
    home.leave(0.1, RUNNING)
    assert home.watch().code == 1
    held = lock.take(home.made.home.lock_file)
    assert held is not None
    with held:
        assert home.watch().output.startswith("Nights are running again\n")
    assert home.hook.bodies[-1]["items"][0]["lines"] == [
        "A night is running now. Schedule: 0 * * * * (schedule in its config)."
    ]


def test_a_second_spell_is_told_like_the_first(home: Watching) -> None:
    home.leave(90)
    home.watch()
    home.leave(50)  # it ran, and stopped again, while nobody watched
    assert home.watch().output.startswith("No night has completed since ")
    assert home.events == ["quiet", "quiet"]


def test_what_a_route_did_not_take_is_told_when_it_works_again(home: Watching) -> None:
    home.leave(72)
    home.hook.faults += [webhook.Fault(status=400)]
    failed = home.watch()
    assert "Route hook: its server rejected the request (400)" in failed.output
    assert (home.events, len(home.issues.issues)) == ([], 1)
    assert home.watch().output == ""
    assert home.events == ["quiet"]
    assert (len(home.issues.issues), len(home.channel.channel())) == (1, 1)


def test_a_config_that_stops_the_nights_is_told_all_the_same(home: Watching) -> None:
    home.leave(72)
    home.configure(timeouts={"rum": 3})
    told = home.watch()
    assert told.code == 1
    assert "No night can start because of an error in the home's config: " in told.output
    assert "$.timeouts.rum" in home.hook.bodies[0]["items"][0]["lines"][-1]


def test_quiet_hours_hold_it_back(home: Watching) -> None:
    home.leave(72)
    now = common.utc_now()
    hours = [f"{now + datetime.timedelta(hours=hour):%H:%M}" for hour in (-2, 2)]
    home.routes["hook"] |= {"quiet_hours": "-".join(hours), "time_zone": "UTC"}
    home.configure()
    home.watch()
    assert home.events == []
    del home.routes["hook"]["quiet_hours"], home.routes["hook"]["time_zone"]
    home.configure()
    home.watch()
    assert home.events == ["quiet"]


def test_an_interrupted_attempt_is_named(home: Watching) -> None:
    home.leave(72)
    attempt = home.leave(2, INTERRUPTED)
    said = f"The night of {common.parse_stamp(attempt):%Y-%m-%d %H:%M} UTC started but was interrupted."
    assert said in home.watch().output


def test_an_attempt_that_still_runs_did_not_break_off(home: Watching) -> None:
    home.leave(72)
    home.leave(40, RUNNING)
    held = lock.take(home.made.home.lock_file)
    assert held is not None
    with held:
        output = home.watch().output
    assert ("is still running" in output, "broke off" in output) == (True, False), output


def test_nights_that_run_are_told_where_that_is_asked(home: Watching) -> None:
    home.leave(0.001)
    assert home.watch().output == ""
    assert home.watch("--verbose").output.startswith("Nights are running on schedule\n")
    assert home.events == []


def test_a_new_home_is_not_quiet_before_its_first_night_is_due(home: Watching) -> None:
    assert home.watch("--verbose").output.startswith("Nights are running on schedule\nNo night was due yet.")
    long_ago = (common.utc_now() - datetime.timedelta(days=2)).timestamp()
    os.utime(home.made.home.config_file, (long_ago, long_ago))
    assert home.watch().output.startswith("No night has ever completed\n")


def test_without_a_schedule_it_says_what_to_do(home: Watching, tmp_path: Path) -> None:
    home.configure(schedule="")
    script(tmp_path / "bin" / "crontab", "#!/bin/sh\nexit 1\n")
    done = home.watch(PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.code == 2
    assert "no schedule" in done.output
    home.configure(schedule="at three")
    done = home.watch()
    assert done.code == 2
    assert "config/config.json: $.schedule: 'at three' is not a cron schedule" in done.output


def test_a_crontab_s_line_is_a_schedule(home: Watching, tmp_path: Path) -> None:
    home.configure(schedule="")
    home.leave(72)
    line = f"0 * * * * /x/run_dashboard.sh {home.made.path}"
    script(tmp_path / "bin" / "crontab", f"#!/bin/sh\necho '{line}'\n")
    done = home.watch(PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.code == 1
    assert "Schedule: 0 * * * * (crontab of " in done.output


def test_a_real_night_ends_a_spell(home: Watching) -> None:
    home.leave(72)
    home.watch()
    shutil.rmtree(home.made.home.config("subsystem", "stat_alerts"))
    home.made.subsystem()
    home.made.night()
    assert home.watch().output.startswith("Nights are running again\n")
    assert home.events == ["quiet", "runs_again"]


@pytest.mark.parametrize("elapsed_s", [1e308, -5.0])
def test_a_record_with_an_impossible_duration_does_not_silence_it(home: Watching, elapsed_s: float) -> None:
    home.made.configure(watch_grace_minutes=None)
    stamp = home.leave(30)
    common.write_json(home.made.home.night_file(stamp), Night(stamp, COMPLETE, elapsed_s=elapsed_s).to_json())
    assert home.watch("--verbose").code in {0, 1}


def test_a_spell_whose_note_is_damaged_is_told_anew_and_does_not_stop_it(home: Watching) -> None:
    home.leave(30)
    assert home.watch().code == 1
    note = home.made.home.output("routes") / "watch" / "current.json"
    common.write_json(note, {"schema_version": 1, "night": "20260504T031500Z", "last": "yesterday"})
    home.leave(0.1)
    assert home.watch().code == 0
