"""Claude Code. What is said of it here was seen with version 2.1.197."""
