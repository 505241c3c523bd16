"""Content or code that changed is loaded anew: from memory and from disk, in this run and the next."""

import functools
import importlib
import importlib.metadata
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cache_pupils import Decode, make_files, plan_of

import headrace as hr
from headrace.engine.cache import stage_hash
from headrace.engine.cache.stage_hash import Unhashable, stages_digest
from headrace.engine.transform.stage import Stage


@pytest.fixture(params=["memory", "folder"])
def where(request, tmp_path):
    return request.param if request.param == "memory" else tmp_path / "kept"


def test_a_file_of_the_same_size_with_other_bytes_is_read_again(root, where):
    plan = plan_of(root).cache(max_bytes=10**6, where=where)
    old = plan[0]
    path = Path(plan.locate(0))
    state = path.stat()
    with path.open("r+b") as file:
        file.write(bytes(range(100, 140)))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # even with the old time put back
    assert plan[0]["x"].tolist() != old["x"].tolist()
    assert plan[0]["x"].tolist() == plan_of(root)[0]["x"].tolist()


def test_a_file_that_is_younger_than_the_clock_can_tell_is_not_kept(tmp_path, where):
    root = make_files(tmp_path / "data", 1)
    plan = plan_of(root).cache(max_bytes=10**6, where=where)
    plan[0]
    if time.time_ns() - Path(plan.locate(0)).stat().st_mtime_ns < 50_000_000:  # unless the machine stood still
        assert plan.source.usage()[0] == 0
    time.sleep(0.06)
    plan[0]
    assert plan.source.usage()[0] == 1


def test_a_new_class_folder_moves_the_labels_of_kept_samples(root, tmp_path):
    kept = {"max_bytes": 10**6, "where": tmp_path / "kept"}
    plan = plan_of(root).cache(**kept)
    assert [plan[index]["y"] for index in range(len(plan))] == [0] * 12 + [1] * 11
    (root / "bee").mkdir()
    (root / "bee" / "1.bin").write_bytes(bytes(40))
    assert plan_of(root).cache(**kept)[plan.index_of("cat/0.bin") + 1]["y"] == 1


def test_the_next_run_finds_what_is_on_disk_and_only_for_the_same_stages(root, tmp_path, counter):
    kept = {"max_bytes": 10**6, "where": tmp_path / "kept"}
    first, second = (plan_of(root, counter).cache(**kept) for _ in range(2))
    assert first[0]["x"].tobytes() == second[0]["x"].tobytes()
    assert counter.stat().st_size == 1
    other = hr.folder(root).map(functools.partial(scaled, 3.0), name="decode").cache(**kept)
    assert other[0]["x"].tolist() == [float(value) * 3 for value in first[0]["x"].reshape(-1)]


def scaled(factor, record):
    return {"x": np.frombuffer(record.data, np.uint8) * np.float32(factor)}


def digest(function):
    return stages_digest((Stage.of(function, "stage"),))


def made(factor, default=1):
    def stage(sample, offset=default):
        return helper(sample) * factor + offset

    return stage


def helper(sample):
    return sample + OFFSET


OFFSET = 1


def test_the_same_code_with_the_same_values_has_the_same_digest():
    assert digest(made(2)) == digest(made(2))
    assert digest(functools.partial(scaled, 2.0)) == digest(functools.partial(scaled, 2.0))
    assert digest(Decode("a")) == digest(Decode("a"))


def test_whatever_decides_the_result_changes_the_digest(monkeypatch):
    seen = {digest(made(2)), digest(made(3)), digest(made(2, default=2)), digest(made(np.arange(3)))}
    seen |= {digest(functools.partial(scaled, factor)) for factor in (2.0, 3.0)}
    seen |= {digest(Decode("a")), digest(Decode("b"))}
    seen |= {digest(lambda sample: sample + 1), digest(lambda sample: sample + 2), digest(lambda sample: sample - 1)}
    monkeypatch.setitem(globals(), "OFFSET", 2)
    seen.add(digest(made(2)))
    monkeypatch.setitem(globals(), "helper", lambda sample: sample)
    seen.add(digest(made(2)))
    assert len(seen) == 13


@pytest.mark.parametrize("imports_inside", [True, False])
def test_a_module_of_ones_own_counts_by_what_is_taken_from_it(tmp_path, monkeypatch, imports_inside):
    monkeypatch.syspath_prepend(tmp_path)
    seen = set()
    for factor in (2, 3):
        text = f"def decode(sample):\n    return inner(sample)\ndef inner(sample):\n    return sample * {factor}\n"
        (tmp_path / "own_decoder.py").write_text(text + "#" * factor)
        sys.modules.pop("own_decoder", None)
        importlib.invalidate_caches()
        namespace = {} if imports_inside else {"own_decoder": importlib.import_module("own_decoder")}
        first = "import own_decoder; " if imports_inside else ""
        exec(f"def stage(sample):\n    {first}return own_decoder.decode(sample)", namespace)
        seen.add(digest(namespace["stage"]))
    sys.modules.pop("own_decoder")
    assert len(seen) == 2


def test_a_library_of_another_environment_is_one(tmp_path, monkeypatch):
    home = tmp_path / "lib" / "site-packages"
    home.mkdir(parents=True)
    # Nothing of its inside is looked at, or the pattern, which shows no state, would be refused.
    (home / "lent_library.py").write_text(
        "import re\nPATTERN = re.compile('a')\ndef decode(x):\n    return PATTERN, x\n"
    )
    monkeypatch.syspath_prepend(home)
    stage_hash._version.cache_clear()
    decode = importlib.import_module("lent_library").decode
    digest(lambda sample: decode(sample))
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(home)])
    stage_hash._version.cache_clear()
    with pytest.raises(Unhashable, match=r"re\.Pattern"):
        digest(lambda sample: decode(sample))
    stage_hash._version.cache_clear()
    sys.modules.pop("lent_library")


def test_another_version_of_a_library_changes_the_digest(monkeypatch):
    def stage(record):
        from PIL import Image

        return Image.open(record)

    before = digest(stage)
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.1" if name.lower() == "pillow" else real(name))
    stage_hash._version.cache_clear()
    assert digest(stage) != before
    stage_hash._version.cache_clear()


def test_what_has_no_description_is_refused():
    with Path(os.devnull).open() as file, pytest.raises(Unhashable, match=r"^stage: factor"):
        digest(made(file))
