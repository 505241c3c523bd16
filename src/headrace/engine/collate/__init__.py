"""From samples to one batch: torch's default rules, or padding and masks by contract."""

from headrace.engine.collate.as_arrays import NotJoined, join_as_arrays
from headrace.engine.collate.by_contract import ContractCollate
from headrace.engine.collate.default import default_collate, default_convert, explain_failure, is_ours
from headrace.engine.collate.difference import Difference, first_difference

__all__ = [
    "ContractCollate",
    "Difference",
    "NotJoined",
    "default_collate",
    "default_convert",
    "explain_failure",
    "first_difference",
    "is_ours",
    "join_as_arrays",
]
