"""What several rules ask the same evidence. Pure; rules never import each other, so the questions live here."""
