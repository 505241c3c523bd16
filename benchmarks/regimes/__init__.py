"""The regimes: one kind of work in each file, with every loader's way to do it."""
