"""Retention by the name that it has for users."""

from tvmtraces.retention import prune

__all__ = ["prune"]
