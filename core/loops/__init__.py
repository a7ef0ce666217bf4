"""Loops: what people and agents may do with them, what the configuration declares, and when they fire."""
