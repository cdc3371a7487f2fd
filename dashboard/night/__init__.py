"""One night: the engine that runs stages, and the record that it keeps."""
