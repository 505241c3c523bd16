"""The engine: from a source's records to batches. The rooms stand in the order in which data flows."""
