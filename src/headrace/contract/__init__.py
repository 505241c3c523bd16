"""What a loader must deliver: declared or inferred, kept as TOML, checked by sample id."""

from headrace.contract.breach import Breach
from headrace.contract.contract import Contract
from headrace.contract.diff import Change, ContractDiff
from headrace.contract.field import Dim, Field

__all__ = ["Breach", "Change", "Contract", "ContractDiff", "Dim", "Field"]
