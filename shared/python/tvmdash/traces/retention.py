"""Retention by the name that it has for users."""

from tvmtraces.sealing import prune

__all__ = ["prune"]
