"""Perfetto's protocol buffers, written without their library."""
