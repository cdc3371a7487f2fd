"""The outcome of a night: its verdict, in words and as the page's data."""
