"""TVM from a package index."""
