"""Which index comes next: pure arithmetic, without I/O, threads or torch.

permutation  [0, N) in keyed order          batches  cut into batches and ranks
orders       what an epoch's order can be   passes   the rows of one pass, step by step
cursor       where a loader stands          ledger   what was handed over, counted and hashed
"""
