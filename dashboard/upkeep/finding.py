"""Findings about a home, each with its remedy."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field


class Severity(enum.StrEnum):
    """The weight of a finding."""

    FAULT = "fault"
    """Nights fail or lose something, or will soon."""
    WARNING = "warning"
    """Numbers are worse than they could be, or something is not looked after."""
    GOOD = "good"


@dataclass(frozen=True)
class HomeFinding:
    """One thing. subject: what it is about, in a word; remedy: what to do, as a command where one does it.

    fix: does it, where that is safe, and says what it did.
    """

    severity: Severity
    subject: str
    text: str
    remedy: str = ""
    fix: Callable[[], str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        mark = {Severity.FAULT: "FAULT", Severity.WARNING: "warning", Severity.GOOD: "ok"}[self.severity]
        remedy = f"\n         {self.remedy}" if self.remedy else ""
        return f"{mark:<8} {self.subject}: {self.text}{remedy}"


def make_fault(subject: str, text: str, remedy: str, fix: Callable[[], str] | None = None) -> HomeFinding:
    return HomeFinding(Severity.FAULT, subject, text, remedy, fix)


def make_warning(subject: str, text: str, remedy: str, fix: Callable[[], str] | None = None) -> HomeFinding:
    return HomeFinding(Severity.WARNING, subject, text, remedy, fix)


def make_good(subject: str, text: str) -> HomeFinding:
    return HomeFinding(Severity.GOOD, subject, text)
