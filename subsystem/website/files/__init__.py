"""Files of the site: written, carried over from the old site, copied."""
