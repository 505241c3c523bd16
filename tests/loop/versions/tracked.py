"""Data as DVC 3.67.1 and DVC 2.58.2 tracked them: the texts are what these programs wrote."""

from __future__ import annotations

import pathlib

FOLDER_3 = {".hidden": b"\x00\x01", "1.txt": b"one\n", "ä/2é.txt": b"two\r\n"}
FOLDER_3_MD5 = "7286a806acbaf3fe892ef9bb639b4710.dir"
FOLDER_3_DVC = f"""outs:
- md5: {FOLDER_3_MD5}
  size: 11
  nfiles: 3
  hash: md5
  path: bil der
"""
FOLDER_3_LISTING = (
    '[{"md5": "441077cc9e57554dd476bdfb8b8b8102", "relpath": ".hidden"}, '
    '{"md5": "5bbf5a52328e7439ae6e719dfe712200", "relpath": "1.txt"}, '
    '{"md5": "11fb069f7f29124c833020fb42120d64", "relpath": "\\u00e4/2\\u00e9.txt"}]'
)
LABELS = b"a,b\r\n"
LABELS_3_DVC = """outs:
- md5: 8f457ad9d573db377e681164b7f5af35
  size: 5
  hash: md5
  path: labels.csv
"""
LOCK_3 = """schema: '2.0'
stages:
  prep:
    cmd: mkdir -p out && cp data/labels.csv out/l.csv && cp data/labels.csv "no"
      && echo 1 > m.json
    deps:
    - path: raw.csv
      hash: md5
      md5: 8f457ad9d573db377e681164b7f5af35
      size: 5
    outs:
    - path: m.json
      hash: md5
      md5: b026324c6904b2a9cb4b88d6d61c81d1
      size: 2
    - path: no
      hash: md5
      md5: 8f457ad9d573db377e681164b7f5af35
      size: 5
    - path: out
      hash: md5
      md5: 2e2cfcdae07e51500da7440d17ce8aab.dir
      size: 5
      nfiles: 1
"""
IGNORE = """# Add patterns of files dvc should ignore, which could improve
# the performance. Learn more at
# https://dvc.org/doc/user-guide/dvcignore
"""

FOLDER_2 = {"1.txt": b"one\r\ntwo\r\n", "ä/2é.bin": b"\x00\r\n"}
FOLDER_2_MD5 = "f585d21255809589b3f40bf479c154da.dir"
FOLDER_2_DVC = f"""outs:
- md5: {FOLDER_2_MD5}
  size: 13
  nfiles: 2
  path: bil der
"""
FOLDER_2_LISTING = (
    '[{"md5": "2094b601daac3d68f5aed51d3c20f7cd", "relpath": "1.txt"}, '
    '{"md5": "692c8022360661692872fdc730517229", "relpath": "\\u00e4/2\\u00e9.bin"}]'
)
LABELS_2 = b"a\r\nb\r\n"
LABELS_2_DVC = """outs:
- md5: dd8c6a395b5dd36c56d23275028f526c
  size: 6
  path: labels.csv
"""
LOCK_2 = """schema: '2.0'
stages:
  prep:
    cmd: mkdir -p out && cp labels.csv out/l.csv
    deps:
    - path: labels.csv
      md5: dd8c6a395b5dd36c56d23275028f526c
      size: 6
    outs:
    - path: out
      md5: 35cb2dec2968f3a6546cf09f49c0c9a0.dir
      size: 6
      nfiles: 1
"""
BOTH_DVC = """outs:
- path: x1
  md5: 9dd4e461268c8034f5c8564e155c67a6
  size: 1
- path: x2
  md5: 2fb1c5cf58867b5bbc9a1b145a86f3a0
  size: 2
"""


def write(folder: pathlib.Path, files: dict[str, bytes]) -> pathlib.Path:
    """Writes files by relative path."""
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return folder


def repository_3(root: pathlib.Path) -> pathlib.Path:
    """A repository of DVC 3 with all of its data, and its cache with the listing of the folder alone."""
    write(root / "data/bil der", FOLDER_3)
    cached = f".dvc/cache/files/md5/{FOLDER_3_MD5[:2]}/{FOLDER_3_MD5[2:]}"
    texts = {
        "data/bil der.dvc": FOLDER_3_DVC,
        "data/labels.csv.dvc": LABELS_3_DVC,
        "dvc.lock": LOCK_3,
        ".dvcignore": IGNORE,
        ".dvc/config": "",
        cached: FOLDER_3_LISTING,
        "m.json": "1\n",
    }
    write(root, {name: text.encode() for name, text in texts.items()})
    return write(root, dict.fromkeys(("data/labels.csv", "raw.csv", "no", "out/l.csv"), LABELS))


def repository_2(root: pathlib.Path) -> pathlib.Path:
    """The same of DVC 2: no `hash`, line ends taken for equal, another layout of the cache."""
    write(root / "bil der", FOLDER_2)
    cached = f".dvc/cache/{FOLDER_2_MD5[:2]}/{FOLDER_2_MD5[2:]}"
    texts = {
        "bil der.dvc": FOLDER_2_DVC,
        "labels.csv.dvc": LABELS_2_DVC,
        "both.dvc": BOTH_DVC,
        "dvc.lock": LOCK_2,
        ".dvc/config": "",
        cached: FOLDER_2_LISTING,
    }
    write(root, {name: text.encode() for name, text in texts.items()})
    return write(root, {"labels.csv": LABELS_2, "out/l.csv": LABELS_2, "x1": b"x", "x2": b"yy"})


def forget_cache(root: pathlib.Path) -> None:
    """As in a fresh clone to which data were copied by hand."""
    import shutil

    shutil.rmtree(root / ".dvc/cache")
