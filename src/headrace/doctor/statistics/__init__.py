"""The protocol of an honest verdict about speed: pure functions from rounds to verdicts; no clock, no processes.

    schedule ──▶ (rounds are measured elsewhere) ──▶ rounds     one setting: median, interval, warnings
                                                 ├─▶ pairs      two settings: one log ratio per block
                                                 ├─▶ noise      what two equal settings differ by
                                                 ├─▶ drift      what the machine changed by meanwhile
                                                 └─▶ verdict    same | faster | slower | inconclusive
    waits, period                                               inside one round, where steps are autocorrelated
    utilisation                                                 the ceiling that servers and demands allow

`comparison` joins them. The unit of replication is a round in a fresh process, never a step. Inside, ratios are natural
logarithms, where "twice as fast" and "half as fast" are equally far from "equal"; what is told to people are ratios.
"""
