"""Repeatable training: loops that can be killed at any moment and go on as if they had not been."""
