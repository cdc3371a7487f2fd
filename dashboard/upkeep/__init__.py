"""What keeps a home well for years: strays set aside, archives tried, indexes made anew, and what a doctor finds."""
