"""Programs that ask the service on its socket. They use the standard library alone: copies run in sessions' folders."""
