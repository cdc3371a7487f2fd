"""Configs become a plan before anything runs."""
