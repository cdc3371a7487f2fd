"""`bisect`: the commit that moved a series."""
