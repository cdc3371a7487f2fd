"""`reproduce`: a published number measured again."""
