"""Questions that the rules about orders ask the same evidence, so that one cause is told by one rule. Pure.

set_epoch is never called ── explains ──▶ the order repeats ── explains ──▶ the batches repeat
"""

from __future__ import annotations

from headrace.doctor.evidence.orders import Orders

__all__ = ["batches_repeat", "is_poorly_mixed", "num_orders", "num_runs", "order_repeats", "waits_for_epoch"]

FEWEST_SAMPLES = 8
"""Two random orders of 8 samples are equal once in 40,320 times; of fewer, now and then."""
FEWEST_BATCHES = 3
"""Two batches are few enough to hold the same samples by chance if the data set is small."""


def order_repeats(orders: Orders) -> bool:
    """True if every pass has the same samples in the same order, and this order is not the data set's own."""
    known = [one for one in orders.passes if one.is_complete] or list(orders.passes)
    if not known or (not known[0].is_complete and known[0].num_samples > (orders.num_rows or known[0].num_samples)):
        return False  # it goes round and round in one pass: nobody begins a second one
    # Of passes that were left before their ends, beginnings of the same length can be compared.
    is_long = len(known) >= 2 and known[0].num_samples >= FEWEST_SAMPLES
    is_comparable = len({one.num_samples for one in known}) == 1
    return is_long and is_comparable and not orders.is_sequential and len({one.order_hash for one in known}) == 1


def batches_repeat(orders: Orders) -> bool:
    """True if the batches of every pass hold the same samples."""
    complete = [one for one in orders.passes if one.is_complete]
    is_batched = (orders.batch_size or 1) > 1 and len(complete) >= 2 and complete[0].num_batches >= FEWEST_BATCHES
    return is_batched and not orders.is_sequential and len({one.batches_hash for one in complete}) == 1


def waits_for_epoch(orders: Orders) -> bool:
    """True if the order repeats because nobody tells the epoch to the object that shuffles by it."""
    return (
        orders.set_epoch_of is not None
        and not orders.epochs_told
        and orders.order_follows_epoch is not False
        and order_repeats(orders)
    )


def num_runs(orders: Orders) -> float:
    """Runs of equal labels in the first pass; 0: labels are not known."""
    return 0.0 if orders.labels is None else orders.passes[0].num_samples / orders.labels.mean_run


def is_poorly_mixed(orders: Orders) -> bool:
    """True if classes come in runs, and batches hold clearly fewer classes than random ones would."""
    labels = orders.labels
    if labels is None or not orders.passes or orders.passes[0].num_samples < 6 * FEWEST_SAMPLES:
        return False
    runs_are_long = labels.mean_run >= 3 * labels.random_run
    is_batched = (orders.batch_size or 1) > 1
    return runs_are_long and (not is_batched or labels.labels_per_batch <= 0.6 * labels.random_per_batch)


def num_orders(orders: Orders) -> str:
    """How many orders the passes had, for people: `1 in 3 epochs`."""
    return f"{len({one.order_hash for one in orders.passes})} in {len(orders.passes)} epochs"
