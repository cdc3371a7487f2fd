"""`backfill`: TVMs of the past, measured now."""
