"""headrace: diagnoses the data loader you have, and loads data exactly, repeatably and resumably.

    import headrace as hr

    loader = hr.DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2)
    for batch in loader:
        batch.sample_ids, batch.cursor

Names load on first use, so `import headrace` and `headrace --help` do not wait for torch.
"""

from typing import TYPE_CHECKING, Any

from headrace import errors

__version__ = "0.1.0"

if TYPE_CHECKING:
    from headrace.contract import Contract, Field
    from headrace.doctor.front import compare, diagnose, measure, tune
    from headrace.doctor.watch.block import watch
    from headrace.engine.failures import Replace, Skip
    from headrace.engine.loader import DataLoader
    from headrace.engine.order.cursor import Cursor
    from headrace.engine.plan import Plan, arrays, folder, table, tokens
    from headrace.engine.source.manifest import Manifest
    from headrace.engine.transfer import Normalize
    from headrace.engine.transform import image
    from headrace.loop import track
    from headrace.loop.checkpoint import Checkpointer
    from headrace.loop.loop import Loop
    from headrace.loop.versions import data_version

_HOME = {
    "Checkpointer": "headrace.loop.checkpoint",
    "Contract": "headrace.contract",
    "Cursor": "headrace.engine.order.cursor",
    "DataLoader": "headrace.engine.loader",
    "Field": "headrace.contract",
    "Loop": "headrace.loop.loop",
    "Manifest": "headrace.engine.source.manifest",
    "Normalize": "headrace.engine.transfer",
    "Plan": "headrace.engine.plan",
    "Replace": "headrace.engine.failures",
    "Skip": "headrace.engine.failures",
    "arrays": "headrace.engine.plan",
    "compare": "headrace.doctor.front",
    "data_version": "headrace.loop.versions",
    "diagnose": "headrace.doctor.front",
    "folder": "headrace.engine.plan",
    "image": "headrace.engine.transform.image",
    "measure": "headrace.doctor.front",
    "table": "headrace.engine.plan",
    "tokens": "headrace.engine.plan",
    "track": "headrace.loop.track",
    "tune": "headrace.doctor.front",
    "watch": "headrace.doctor.watch.block",
}

__all__ = [
    "Checkpointer",
    "Contract",
    "Cursor",
    "DataLoader",
    "Field",
    "Loop",
    "Manifest",
    "Normalize",
    "Plan",
    "Replace",
    "Skip",
    "arrays",
    "compare",
    "data_version",
    "diagnose",
    "errors",
    "folder",
    "image",
    "measure",
    "table",
    "tokens",
    "track",
    "tune",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Loads a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_HOME[name])
    value = module if name in {"image", "track"} else getattr(module, name)  # rooms of their own behind the front door
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
