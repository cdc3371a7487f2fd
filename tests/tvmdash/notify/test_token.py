"""Where the Slack token comes from, and from where it must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.notify.token import Secrets, find_secrets, refuse_in_config
from tvmdash.slack_util.delivery import SlackConfig, find_slack_faults

TOKEN = "xoxb-1111111111-2222222222-abcdefghijklmnop"
HOOK = "https://hooks.slack.com/services/T0/B0/secret"


def secret_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "slack_token"
    path.write_text(text)
    path.chmod(mode)
    return path


def find(path: Path | str, home: Path, **environment: str) -> Secrets | None:
    return find_secrets(str(path), home, environment)


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    path = secret_file(tmp_path, HOOK)
    found = find(path, tmp_path / "home", SLACK_BOT_TOKEN=TOKEN)
    assert found is not None
    assert (found.bot_token, found.webhook_url, found.origin) == (TOKEN, "", "the environment (SLACK_BOT_TOKEN)")


@pytest.mark.parametrize(
    "text", [f"{TOKEN}\n", f"# the bot's\n\n  {TOKEN}  \n{HOOK}", f"SLACK_BOT_TOKEN={TOKEN}", f'"{TOKEN}"']
)
def test_a_file_holds_a_token_or_a_webhook_on_lines_of_their_own(tmp_path: Path, text: str) -> None:
    found = find(secret_file(tmp_path, text), tmp_path / "home")
    assert found is not None
    assert found.bot_token == TOKEN
    assert TOKEN not in repr(found)


@pytest.mark.parametrize("path", ["", "nowhere/slack_token"])
def test_no_file_is_no_slack(tmp_path: Path, path: str) -> None:
    assert find(path, tmp_path) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_can_read_or_write_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = secret_file(tmp_path, TOKEN, mode)
    with pytest.raises(DashboardError, match=f"chmod 600 {path}"):
        find(path, tmp_path / "home")


def test_a_file_inside_the_home_is_refused_because_the_home_is_archived(tmp_path: Path) -> None:
    path = secret_file(tmp_path, TOKEN)
    with pytest.raises(DashboardError, match="archived every night"):
        find(path, tmp_path)
    link = tmp_path.parent / f"{tmp_path.name}-link"
    link.symlink_to(path)
    with pytest.raises(DashboardError, match="archived every night"):
        find(link, tmp_path)


@pytest.mark.parametrize(
    "text", ["", "\n# nothing\n", "hunter2secret", "xoxb-", "xoxb-has space-12345678", "http://x.org/secret", "xoxb-é"]
)
def test_what_is_no_token_is_refused_without_being_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(DashboardError) as caught:
        find(secret_file(tmp_path, text), tmp_path / "home")
    assert "secret" not in str(caught.value).replace(str(tmp_path), "")


def test_a_folder_or_a_pipe_in_its_place_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DashboardError):
        find(tmp_path, tmp_path / "home")
    import os

    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(DashboardError, match="not a regular file"):
        find(tmp_path / "pipe", tmp_path / "home")


def test_a_token_in_a_config_is_refused_without_being_shown() -> None:
    with pytest.raises(DashboardError, match=r"c\.json: \$\.env\.SLACK_BOT_TOKEN") as caught:
        refuse_in_config({"SLACK_BOT_TOKEN": TOKEN}, "c.json")
    assert TOKEN not in str(caught.value)
    refuse_in_config({"OTHER": "x"}, "c.json")


@pytest.mark.parametrize(
    ("mode", "env", "words"),
    [(0o600, {}, ""), (0o644, {}, "chmod 600"), (0o600, {"SLACK_BOT_TOKEN": TOKEN}, "secrets must not be in a config")],
)
def test_what_is_wrong_with_a_subsystems_slack_is_known_before_the_night(
    tmp_path: Path, mode: int, env: dict[str, str], words: str
) -> None:
    (tmp_path / "home").mkdir()
    config = SlackConfig(
        channel="C0123456789", token_file=str(secret_file(tmp_path, TOKEN, mode)), slack_seconds=1.0, env=env
    )
    faults = find_slack_faults(config, Home(tmp_path / "home"), "config/subsystem/exp_reports/config.json")
    assert len(faults) == bool(words), faults
    assert all(words in fault for fault in faults)
