"""What is over for long is removed by the service."""
