"""`compare`: two TVMs measured in turn."""
