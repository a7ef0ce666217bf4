"""What the service does for sessions that nobody asked it to: deaths told, crashes mended, idle ones collected."""
