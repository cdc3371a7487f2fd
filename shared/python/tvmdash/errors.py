"""The one error that is meant for people."""

from __future__ import annotations

from typing import Self


class DashboardError(Exception):
    """Something a person can mend: what is wrong (with the value), where (file or field), and the remedy.

    Its text is "place: problem remedy"; place and remedy may be part of the problem's own words instead. Whoever needs
    a part, or knows the place by a better name, asks the attributes and `at`; nobody takes the text apart. Every other
    exception that reaches an edge of the program is a bug of ours.
    """

    problem = place = remedy = ""
    """Class attributes: subclasses may skip `__init__`."""

    def __init__(self, problem: str = "", *, place: object = "", remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = str(place)
        self.remedy = remedy

    def __str__(self) -> str:
        problem = f"{self.place}: {self.problem}" if self.place else self.problem or super().__str__()
        return f"{problem} {self.remedy}" if self.remedy else problem

    def at(self, place: object, *, remedy: str = "") -> Self:
        """Return a copy of the error with `place` as its place and one more remedy."""
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__)
        other.place = str(place)
        other.remedy = " ".join(filter(None, (self.remedy, remedy)))
        return other
