"""`try`: one TVM measured in turn with another until it is known how they differ."""
