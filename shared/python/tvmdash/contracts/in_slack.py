"""What a subsystem leaves that told a night's news in Slack by itself: in_slack.json, for the subsystems' message."""

from __future__ import annotations

from dataclasses import dataclass

from tvmdash.structured import Stamp

IN_SLACK_FILE = "in_slack.json"


@dataclass(frozen=True)
class InSlack:
    """What is said of the night `night` in place of the subsystem's report: `headline`, and `details` below it.

    words: all of it, said where there is no headline. page: the page of the website that has all of it.
    """

    night: Stamp
    words: str = ""
    headline: str = ""
    details: str = ""
    page: str = ""
