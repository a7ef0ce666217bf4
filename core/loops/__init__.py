"""Loops: what people and agents may do with them, what the configuration declares, when they fire."""
