"""The Slack token or webhook: where it comes from, and that it goes nowhere else."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tvmdash.common.http_util import is_safe
from tvmdash.common.secret_file import SecretFile
from tvmdash.errors import DashboardError

TOKEN_VARIABLE, WEBHOOK_VARIABLE = "SLACK_BOT_TOKEN", "SLACK_WEBHOOK_URL"
DEFAULT_FILE = "~/.config/tvmdash/slack_token"
_TOKEN = re.compile(r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,400}")


@dataclass(frozen=True)
class Secrets:
    """A bot token, a webhook, or both; `origin` says in words where they were found. Neither is ever shown."""

    bot_token: str = field(default="", repr=False)
    webhook_url: str = field(default="", repr=False)
    origin: str = ""


def find_secrets(token_file: str, home: Path, environment: Mapping[str, str] | None = None) -> Secrets | None:
    """The secrets of the environment, else of `token_file`; None where there is neither.

    DashboardError where what is there is not a secret, or can be read by others. No message holds it.
    """
    variables = os.environ if environment is None else environment
    secrets = {name: variables.get(name, "").strip() for name in (TOKEN_VARIABLE, WEBHOOK_VARIABLE)}
    if any(secrets.values()):
        given = " and ".join(name for name, value in secrets.items() if value)
        return _check(secrets[TOKEN_VARIABLE], secrets[WEBHOOK_VARIABLE], f"the environment ({given})")
    path = home / Path(token_file).expanduser()
    lines = SecretFile(path, "Slack token", DEFAULT_FILE).read_lines(home) if token_file else None
    return None if lines is None else _parse(lines, path)


def refuse_in_config(env: Mapping[str, str], where: str) -> None:
    """Raise DashboardError where a config's `env` holds a secret: configs are copied, archived and shown."""
    for name in (TOKEN_VARIABLE, WEBHOOK_VARIABLE):
        if env.get(name):
            raise DashboardError(
                f"{where}: $.env.{name}: secrets must not be in a config, which is copied and archived every night. "
                f"Put it into a file with mode 600 ({DEFAULT_FILE}), set token_file to that file, and create a new "
                "secret."
            )


def _parse(lines: list[str], path: Path) -> Secrets:
    token = webhook = ""
    for number, line in enumerate(lines, start=1):
        value = line.strip().removeprefix(f"{TOKEN_VARIABLE}=").removeprefix(f"{WEBHOOK_VARIABLE}=").strip("'\"")
        if not value or value.startswith("#"):
            continue
        if value.startswith("xox"):
            token = value
        elif value.startswith("http"):
            webhook = value
        else:
            raise DashboardError(f"{path}: line {number} is neither a token (xoxb-...) nor a webhook (https://...).")
    if not token and not webhook:
        raise DashboardError(f"{path}: contains no token. Put the bot token (xoxb-...) or the webhook URL into it.")
    return _check(token, webhook, str(path))


def _check(token: str, webhook: str, origin: str) -> Secrets:
    if token and not _TOKEN.fullmatch(token):
        problem = "not a Slack token. Copy the Bot User OAuth Token (xoxb-...)."
        raise DashboardError(f"{origin}: {problem}")
    if webhook and not is_safe(webhook):
        problem = "the webhook is not an https:// URL. Copy it from the app's Incoming Webhooks."
        raise DashboardError(f"{origin}: {problem}")
    return Secrets(token, webhook, origin)
