"""Watches a training script that is not ours, from inside its process: hooks that look and never change."""
