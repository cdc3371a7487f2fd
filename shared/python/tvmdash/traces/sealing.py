"""Sealed runs by the name that they have for users."""

from tvmtraces.sealing import seal, verify

__all__ = ["seal", "verify"]
