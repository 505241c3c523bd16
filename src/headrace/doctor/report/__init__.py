"""Renderings of one Report: text and JSON."""
