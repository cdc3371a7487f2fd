"""Tries that are asked for in pull requests on GitHub: who may ask, and the one comment that answers."""
