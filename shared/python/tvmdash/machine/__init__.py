"""The machine that measures: what it is, which it is, and what it did meanwhile."""
