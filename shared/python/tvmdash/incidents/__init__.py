"""Incidents: metrics that moved together, the ledger that keeps them, and what people noted."""
