"""Programs that ask the service on its socket. Standard library alone: copies of them run in sessions' folders."""
