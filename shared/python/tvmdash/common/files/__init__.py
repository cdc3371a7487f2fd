"""Files on the disk: locks between processes, what survives a power cut, and trees that others left."""
