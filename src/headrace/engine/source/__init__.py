"""What can be read: a length, ids, record i, many records. Each class here satisfies `headrace.protocols.Source`."""

from headrace.engine.source.adopt import adopt
from headrace.engine.source.arrays import ArraySource
from headrace.engine.source.dataset import DatasetSource
from headrace.engine.source.folder import FileRecord, FolderSource
from headrace.engine.source.gathering import Gathering, collates_by_torch
from headrace.engine.source.lookup import find_row
from headrace.engine.source.manifest import Manifest
from headrace.engine.source.table import TableSource
from headrace.engine.source.tokens import TokenSource

__all__ = [
    "ArraySource",
    "DatasetSource",
    "FileRecord",
    "FolderSource",
    "Gathering",
    "Manifest",
    "TableSource",
    "TokenSource",
    "adopt",
    "collates_by_torch",
    "find_row",
]
