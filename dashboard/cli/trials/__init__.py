"""The commands that measure outside the nights."""
