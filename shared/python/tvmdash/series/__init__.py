"""Series: their names, and the index of their records over all nights."""
