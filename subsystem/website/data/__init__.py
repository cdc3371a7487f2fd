"""The site's data files, for its scripts and for those of others."""
