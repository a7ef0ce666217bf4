"""Loops that fire: the scheduler, the gate and deliveries together."""
