"""The detector: its decision on each series on each night, and the events of the ledger that follow."""
