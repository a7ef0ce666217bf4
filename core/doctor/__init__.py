"""`the-loop doctor`: is everything in place, and if not, what helps. It changes nothing that is kept.

Every check has a deadline of its own, so that a tmux that is frozen, or a network that hangs, holds up nothing else.
"""
