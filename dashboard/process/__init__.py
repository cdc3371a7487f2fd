"""Programs of others: run with a deadline, their output bounded, nothing left running."""
