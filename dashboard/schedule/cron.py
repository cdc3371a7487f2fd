"""When a line of a crontab runs, as Debian's cron reads it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from cronsim import CronSim, CronSimError

from tvmdash.errors import DashboardError

_FIELDS = 5
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
        times = (time.replace(tzinfo=self.zone) for time in CronSim(_spell_out(self.text), begin, reverse=True))
        return next((time.astimezone(datetime.UTC) for time in times if time.astimezone(datetime.UTC) <= before), None)


def parse_cron(text: str, zone: datetime.tzinfo | None = None) -> CronLine:
    """The fields `0 3 * * *`, or `@daily`; DashboardError says what is wrong."""
    count = len(_spell_out(text).split())
    try:
        if count != _FIELDS:
            raise CronSimError(f"it has {count} fields instead of {_FIELDS}")
        CronSim(_spell_out(text), datetime.datetime.now(datetime.UTC))
    except CronSimError as error:
        problem = f"{text!r:.80} is not a cron schedule: {error}."
        raise DashboardError(problem, remedy="Use e.g. 0 3 * * * (every night at 03:00).") from error
    return CronLine(text.strip(), zone)


def _spell_out(text: str) -> str:
    return NICKNAMES.get(text.strip().lower(), text)
