"""`headrace tune`: the simplest setting that meets the need and is proven to deliver the same data.

facts ──▶ lattice ──▶ halving (the loader alone) ──▶ proof (sameness) ──▶ confirmation (the loop) ──▶ choice ──▶ source edit
"""
