"""What the home and other subsystems left, read as data from strangers."""
