"""Values to HTML and SVG."""
