"""What agents may call, and how the calls come in."""
