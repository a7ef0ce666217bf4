"""The configuration file: its shape, where it is found, and everything that may be wrong with it."""
