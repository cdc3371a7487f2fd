"""The one error that is meant for people."""

from __future__ import annotations


class DashboardError(Exception):
    """Something a person can mend: the message names the file, the place, the value and the remedy.

    Every other exception that reaches an edge of the program is a bug of ours.
    """
