"""Tools for authors of experiments and subsystems: a new one from a skeleton, and a smoke test."""
