"""Each incident's thread in Slack."""
