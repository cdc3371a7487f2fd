"""Measurement databases of each kind, read into one set of tables."""
