"""A message's way from the inbox into a pane, and the proof that a turn took it."""
