"""A measurement as one self-contained HTML page, and as a short piece of HTML for notebooks."""
