"""Checks whether a training function that is interrupted goes on as if nothing had happened."""
