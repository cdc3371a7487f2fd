"""The content of pages, as values."""
