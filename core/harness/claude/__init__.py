"""The adapter of Claude Code. Statements about it were observed with the versions that they name, else with 2.1.197."""
