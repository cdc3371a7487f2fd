"""When a line of a crontab runs, as Debian's cron reads it."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from cronsim import CronSim, CronSimError

from tvmdash.errors import DashboardError

_BEYOND = re.compile(r"#|(?<![a-z])[lw]+(?![a-z])", re.IGNORECASE)  # what cronsim takes, and Debian's cron does not
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True)
class CronLine:
    """When a line of a crontab runs. zone: of its times, None for this machine's."""

    text: str
    zone: datetime.tzinfo | None = None

    def find_latest(self, before: datetime.datetime) -> datetime.datetime | None:
        """The last time at `before` or earlier, None where there is none."""
        # an hour that the clocks repeat has two moments for a time of day: so from an hour later on, back
        begin = before.astimezone(self.zone).replace(tzinfo=None) + datetime.timedelta(minutes=61)
        local = CronSim(NICKNAMES.get(self.text.lower(), self.text), begin, reverse=True)
        times = (time.replace(tzinfo=self.zone).astimezone(datetime.UTC) for time in local)
        return next((time for time in times if time <= before), None)


def parse_cron(text: str, zone: datetime.tzinfo | None = None) -> CronLine:
    """The fields `0 3 * * *`, or `@daily`; DashboardError says what is wrong."""
    fields = NICKNAMES.get(text.strip().lower(), text).split()
    odd = _BEYOND.search(" ".join(fields))
    try:
        if len(fields) != 5 or odd:
            raise CronSimError(f"cron knows no {odd[0]!r}" if odd else f"it has {len(fields)} fields instead of 5")
        CronSim(" ".join(fields), datetime.datetime.now(datetime.UTC))
    except CronSimError as error:
        problem = f"{text!r:.80} is not a cron schedule: {error}."
        raise DashboardError(problem, remedy="Use e.g. 0 3 * * * (every night at 03:00).") from error
    return CronLine(text.strip(), zone)
