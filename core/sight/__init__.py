"""What can be seen of a session before something is written into its pane, and what proves that a turn took it."""
