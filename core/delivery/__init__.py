"""A message on its way from the inbox into a pane, and what proves that a turn took it."""
