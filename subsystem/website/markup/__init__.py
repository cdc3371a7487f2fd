"""HTML and SVG made of text and numbers alone."""
