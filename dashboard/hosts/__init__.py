"""Other machines that measure for a home: how they are reached, what is sent there, and what comes home."""
