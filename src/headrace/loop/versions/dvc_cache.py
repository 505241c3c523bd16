"""DVC's cache: whether it holds a content, and which files a folder's hash stands for."""

from __future__ import annotations

import configparser
import hashlib
import json
import pathlib

from headrace.loop.versions.dvc_files import Recorded, root_of

__all__ = ["is_in_cache", "listing_of"]


def is_in_cache(record: Recorded, md5: str | None) -> bool:
    """True if `dvc checkout` needs no remote for this content."""
    return any(place.exists() for place in _places(record, md5))


def listing_of(record: Recorded) -> dict[str, str] | None:
    """Returns md5 by relative path of the files of a recorded folder; None: it is not in the cache, or damaged there."""
    if record.files is not None:
        return dict(record.files)
    if record.md5 is None or not record.md5.endswith(".dir"):
        return None
    for place in _places(record, record.md5):
        try:
            text = place.read_bytes()
            # Held against its name: a damaged listing would accuse the data.
            if hashlib.md5(text, usedforsecurity=False).hexdigest() + ".dir" == record.md5:
                return {str(one["relpath"]): str(one["md5"]) for one in json.loads(text)}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _places(record: Recorded, md5: str | None) -> list[pathlib.Path]:
    """Where the cache would have it: in the layout since DVC 3, and in the one before."""
    root = root_of(record.source)
    if root is None or md5 is None:
        return []
    cache = _cache_of(root)
    return [folder / md5[:2] / md5[2:] for folder in (cache / "files" / "md5", cache)]


def _cache_of(root: pathlib.Path) -> pathlib.Path:
    """The folder of the cache, as the repository's settings say; those of the user and the machine are not looked at."""
    found = configparser.RawConfigParser(strict=False)
    try:
        found.read([root / ".dvc" / "config", root / ".dvc" / "config.local"], encoding="utf-8")
        said = found.get("cache", "dir", fallback="cache")
    except (configparser.Error, UnicodeDecodeError):
        said = "cache"
    return root / ".dvc" / pathlib.Path(said.strip().strip("'\"")).expanduser()
