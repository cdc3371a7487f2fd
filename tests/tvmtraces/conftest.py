"""Inputs of these tests may be files of a home, which `tvmdash.traces` adds."""

import tvmdash.traces  # noqa: F401
