"""The ledger of incidents, the detector's own measured error rate beside its target, and what people noted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from render import page as pages
from views import incidents as incident_views
from views.context import SiteContext

from tvmdash.notify.state import format_fault, read_states
from tvmdash.text import three_digits
from tvmdash.verdict import NightVerdict
from tvmdash.verdict.page import AlertRate


@dataclass(frozen=True)
class RateView:
    """The error rate in words; `state` is ok, partial where it is beyond the target, absent where that is not known."""

    name: str
    words: str
    state: str


def write_alerts(context: SiteContext, new: Path) -> None:
    alerts = context.alerts
    target = alerts.honesty.target_per_1000
    views = [
        incident_views.view(incident, context, silent=incident.id in alerts.silent) for incident in alerts.incidents
    ]
    still = [incident.id for incident in alerts.open]
    by_id = {view.incident.id: view for view in views}
    text = pages.render(
        "alerts.html",
        context.frame("alerts"),
        night=alerts.night,
        tonight=context.tonight.stamp,
        open=[by_id[name] for name in still],
        settled=[view for view in views if view.incident.id not in still],
        rates=[
            _rate(words, rate, target)
            for words, rate in (
                ("on the shuffled nights of this home's series", alerts.honesty.shuffled),
                ("on stretches where the compiled code was the same", alerts.honesty.unchanged),
            )
            if rate is not None
        ],
        target=target,
        planted=_planted(context.verdict.value),
        annotations=alerts.annotations,
        faults=[*alerts.faults, *filter(None, map(format_fault, read_states(context.home)))],
    )
    (new / "alerts.html").write_text(text, encoding="utf-8")


def _planted(verdict: NightVerdict | None) -> list[tuple[str, str]]:
    """Describe what would have been told of steps put into copies of the series' ratios."""
    seen = verdict.sensitivity if verdict is not None else None
    chance = verdict.by_chance if verdict is not None else None
    rows = []
    if chance is not None:
        words = f"reported by chance on at most {100 * chance.of_any:.2g} % of nights, over {chance.series} series"
        rows.append(("nothing changed", f"{words}; {chance.source}"))
    if chance is not None and chance.sure:
        rows.append(("the least sure point reported tonight", chance.sure))
    if seen is None:
        return rows
    for tonight, lately in zip(seen.tonight, seen.lately, strict=True):
        again = f", and {tonight.again} more possibly after remeasuring" if tonight.again else ""
        words = f"reported in {tonight.told} of {tonight.series} series tonight{again}"
        if seen.nights > 1:
            words += f"; in {lately.told} of {lately.series} on the last {seen.nights} nights"
        rows.append((f"a step of {100 * tonight.step:g} %", words))
    if seen.at_most_per_1000 is not None:
        words = f"reported in {seen.false} of {seen.unchanged} series-nights"
        words += f"; with 95 % confidence below {three_digits(seen.at_most_per_1000)} per 1000"
        rows.append(("the same TVM as the night before, treated as a new one", words))
    return rows


def _rate(name: str, rate: AlertRate, target: float | None) -> RateView:
    if rate.per_1000 is None:
        return RateView(name, "no data to measure it on yet", "absent")
    at_most = rate.at_most_per_1000
    text = f"{three_digits(rate.per_1000)} false alerts per 1000 series-nights ({rate.alerts} in {rate.nights}"
    text += f"; with 95 % confidence below {three_digits(at_most)})" if at_most is not None else ")"
    if target is None:
        return RateView(name, text, "absent")
    if at_most is not None and rate.per_1000 <= target < at_most:
        return RateView(name, f"{text}: too few nights yet to show that it is below the target", "absent")
    return RateView(name, text, "partial" if rate.per_1000 > target else "ok")
