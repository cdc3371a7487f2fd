"""Commands that measure outside the nights: compare, bisect, reproduce, backfill, remeasure."""
