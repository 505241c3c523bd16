"""Walks through a user's loader with workers: each worker keeps a journal, so that its death or its silence is evidence.

observer.py runs in the worker, in the place of worker_init_fn and collate_fn ──▶ journal.py ──▶ loader_walk.py reads
"""
