"""Between our processes: whether a service runs, its socket, the FIFO that wakes it, its log."""
