"""What agents may call, and the doors to it."""
