"""Shifts that many series share, and their evidence on the machine."""
