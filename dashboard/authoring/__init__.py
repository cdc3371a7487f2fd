"""What an author of experiments and subsystems starts with: a new one, and a try of it."""
