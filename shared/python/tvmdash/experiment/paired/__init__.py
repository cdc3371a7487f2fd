"""Tonight's TVM and a reference measured in turn: the two processes, whose turn it is, and what comes of it."""
