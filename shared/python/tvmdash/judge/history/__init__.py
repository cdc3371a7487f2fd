"""Change points: whether, where and by how much a series moved, and how sure that is."""
