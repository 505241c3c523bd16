"""Measured numbers and what they depend on: the page cache, memory over time, the machine before anything is measured."""
