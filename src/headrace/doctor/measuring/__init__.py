"""`headrace measure`: what a loop waits for, what would help, and by how much.

plan ──▶ rounds in fresh children, interleaved ──▶ model (what was measured) ──▶ conclusion (pure) ──▶ text | page
"""
