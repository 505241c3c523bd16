"""How findings speak: counts with the right verb, places, names of samples and of runs."""
