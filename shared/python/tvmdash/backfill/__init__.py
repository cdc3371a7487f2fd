"""TVMs of the past: what `backfill` measured, and the history of each series that it makes."""
