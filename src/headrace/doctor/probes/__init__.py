"""Probes: each measures one thing and returns evidence.

A probe has two halves: an `Experiment` (see `doctor.lab.outside`) that runs in a child, and a function that runs it, in the
parent, and makes evidence of what came back.
"""
