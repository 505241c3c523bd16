"""What limits a loop: one question per function, from the measurement to a cause or None; nothing here runs anything.

costs    what workers themselves cost: needless, too many threads, the interpreter's lock, memory, a slower step
shape    how the waits are spread: epoch starts, one slow worker, few slow samples, bursts
stage    which stage of the loader: model and experiment must agree
"""
