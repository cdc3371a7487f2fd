"""The page of an incident: its series on one chart, and what differs between the last good night and the first bad."""
