"""What the detector says of each series on each night, and what that makes of the ledger."""
