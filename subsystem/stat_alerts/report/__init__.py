"""What a night comes to, as a verdict, in words and as the page's data."""
