"""Take what other tools measured into a home: nights of an experiment, marked with where they come from."""

from __future__ import annotations
