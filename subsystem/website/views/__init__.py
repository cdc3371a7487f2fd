"""What pages show, as values."""
