"""`headrace tune`: the simplest setting that meets the need and delivers the same data."""
