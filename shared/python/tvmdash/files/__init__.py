"""Files on the disk: locks between processes, and removing what nobody needs any more."""
