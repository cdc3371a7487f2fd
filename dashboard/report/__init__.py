"""Results of the home as pages and tables."""
