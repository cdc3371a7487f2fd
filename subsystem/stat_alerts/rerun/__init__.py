"""Suspects measured again the same night."""
