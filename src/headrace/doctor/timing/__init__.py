"""One timed run of a loader, of a consumer, or of both, in a child of its own.

    setting ──▶ realise: the user's loader, one thing changed ┐
    consumer ─▶ kept, devices: a batch that stays             ├─▶ runs (the experiment)
    identities, floor, knock_out, accounting: what is asked   ┘      │
                                                                     ▼
                          loops ─ passing, marks, beside ─▶ tape ─▶ windows (pure) ─▶ timed (the record)
                                  counting, amounts, usage ──────────────────────────▶

Six kinds of runs. T is the time of a step:

    L   the loader alone: each batch is touched and dropped         what it can supply
    L0  the same with tiny constant samples                         what handing over costs
    C   the consumer on one batch that is kept                      what it needs
    Ct  the same, and the batch is copied to the device each time   what the copy costs
    N   the consumer on the kept batch, the loader working beside   interference = T(N) - T(C)
    I   the real loop                                               waiting      = T(I) - T(N)
"""
