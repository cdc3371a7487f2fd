"""What moved many series at once, and what that says about the machine."""
