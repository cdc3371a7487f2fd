"""What routes tell of incidents and nights: each case as values, its text in golden/messages/routes.txt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.golden_files import Golden
from tests.tvmdash.notify.route_homes import AFTER, BEFORE, NIGHTS, ONE, SITE, moved
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Joined, Opened
from tvmdash.incidents.ledger import DETECTOR, Event, Incident, fold, iso_of
from tvmdash.notify import text
from tvmdash.notify.message import Item, Message
from tvmdash.notify.message import Occasion as Kind
from tvmdash.notify.senders.slack import make_payload
from tvmdash.verdict import Level, NightVerdict
from tvmdash.verdict.account import make_account

HOME = "/home"
FACTS: dict[str, Any] = {
    "kind": "change",
    "begin": NIGHTS[10],
    "after": NIGHTS[9],
    "found": NIGHTS[10],
    "versions": (BEFORE, AFTER),
    "blame": "compiler",
    "moved": (moved("resnet18"),),
}


def opened(*later: Event, **facts: Any) -> Incident:
    first = Event.of(iso_of(NIGHTS[10]), DETECTOR, ledgers.OPENED, ONE, Opened(**{**FACTS, **facts}))
    return fold([first, *later]).incidents[ONE]


def changed(state: str, who: str = "ann", words: str = "") -> Event:
    return ledgers.changed(ONE, state, at=iso_of(NIGHTS[11]), who=who, words=words)


def joined(*names: str) -> Event:
    return Event.of(iso_of(NIGHTS[11]), DETECTOR, ledgers.JOINED, ONE, Joined(tuple(map(moved, names))))


def message(title: str, *items: Item, event: Kind = Kind.OPENED, **more: Any) -> Message:
    return Message("id", event, NIGHTS[10], title, items, home=HOME, **more)


def incidents() -> Iterator[tuple[str, Message]]:
    for name, incident in {
        "a regression": opened(),
        "an improvement": opened(moved=(moved("gru", "rnn_comp", worse=False, effect=-0.1, low=-0.11, high=-0.09),)),
        "acknowledged already": opened(changed("acknowledged")),
    }.items():
        item = text.describe_new(incident, SITE, HOME)
        yield name, message(text.format_title(incident), item, owners=("CNN team",))
    for name, later in {
        "somebody looks": changed("acknowledged", words="looking at it"),
        "fixed": changed("fixed", DETECTOR, "back where it was"),
        "a false alarm": changed("false_alarm"),
        "more moved": joined("resnet50"),
        "many more moved": joined(*"abcdefg"),
    }.items():
        incident = opened(later)
        changes = incident.changes[1:]
        nights = sorted({each.joined for each in incident.moved if each.joined})
        item = text.describe_news(incident, changes, nights, "", HOME)
        news = text.format_news(incident, changes, nights)
        yield name, message(text.format_title(incident), item, event=Kind.UPDATED, news=news)


def nights() -> Iterator[tuple[str, Message]]:
    lead = "TVM got slower"
    verdict = NightVerdict(NIGHTS[10], Level.REGRESSION, f"{lead}; 3 of 9 series have no value", lead=lead)
    account = make_account(None, verdict)
    failed = tuple(f"cnn{number} failed in run: it crashed" for number in range(7))
    items = (
        text.describe_night(account, NIGHTS[10], SITE, HOME),
        text.describe_failures(failed),
        text.describe_failures(failed[:1]),
        text.describe_open([opened(), opened(moved=(moved("vgg"),))]),
        text.describe_missed([(NIGHTS[9], "TVM did not get slower"), (NIGHTS[8], "Nothing was measured tonight")]),
    )
    yield "a night", message(account.headline, *items, event=Kind.NIGHT)
    none = make_account(None, None)
    yield "not judged", message(none.headline, text.describe_night(none, NIGHTS[10], "", HOME), event=Kind.NIGHT)


def messages() -> Iterator[tuple[str, str]]:
    every = dict([*incidents(), *nights()])
    yield from ((name, text.format_plain(each)) for name, each in every.items())
    first = every["a regression"]
    yield "a regression, as HTML", text.format_html(first)
    for name in ("a regression", "an improvement", "acknowledged already", "somebody looks", "a night"):
        shown = replace(every[name], people=("U0CNNTEAM1",))
        yield f"{name}, in Slack", make_payload(shown).plain()
    brief = tuple(text.describe_briefly(each, SITE) for each in (opened(), opened(changed("fixed"))))
    yield "several in one, in Slack", make_payload(message("2 more incidents", *brief)).plain()
    yield "a regression, on GitHub", text.format_markdown(first.items, cc=["ada"], end=text.list_end(first))


def test_messages(golden: Golden) -> None:
    golden.messages("routes", messages())
