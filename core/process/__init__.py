"""Between processes of ours: whether a service runs, its socket, the FIFO that wakes it, its log."""
