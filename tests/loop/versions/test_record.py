"""A checkpoint remembers the version of the data, and a run that goes on with another one is told."""

import itertools
import json

import pytest
from tests.loop.sensitive import Run
from tests.loop.versions.tracked import write

import headrace as hr
from headrace.errors import ConfigurationError
from headrace.loop.checkpoint import Promise
from headrace.loop.versions import DataVersion
from headrace.loop.versions.same_data import as_plain, differences


def version(**more):
    facts = {
        "path": "data",
        "kind": "dvc",
        "digest": "3f" * 16 + ".dir",
        "num_files": 3,
        "size_bytes": 11,
        "source": "data.dvc",
        "commit": None,
        "is_dirty": False,
        "fingerprint": "ab" * 16,
        "has_content": False,
        "is_checked": True,
    }
    return DataVersion(**{**facts, **more})


def saved_and_restored(folder, before, after):
    run = Run(folder, data=before)
    list(itertools.islice(run.micro_steps(), 4))
    run.checkpoint.save()
    run.checkpoint.close()
    again = Run(folder, data=after)
    restored = again.checkpoint.restore(quiet=True)
    again.checkpoint.close()
    (manifest,) = folder.glob("step-*/manifest.json")
    return json.loads(manifest.read_text())["data"], restored


def test_it_stands_in_the_manifest_beside_the_loaders_fingerprint(tmp_path):
    data, restored = saved_and_restored(tmp_path, version(), version())
    assert data["version"] == version().as_dict()
    assert data["fingerprint"]
    assert restored.promise is Promise.BIT_EXACT


def test_other_data_are_no_continuation(tmp_path):
    _, restored = saved_and_restored(tmp_path, version(), version(digest="9a" * 16 + ".dir", path="elsewhere"))
    assert restored.promise is Promise.CLOSE
    assert restored.lost == ("data: dvc 3f3f3f3f3f3f.. when saved, dvc 9a9a9a9a9a9a.. here",)
    assert "lost: data: dvc 3f3f3f3f3f3f.. when saved" in str(restored)


@pytest.mark.parametrize(("before", "after"), [(version(), None), (None, version()), (None, None)])
def test_what_one_side_does_not_know_is_no_difference(tmp_path, before, after):
    data, restored = saved_and_restored(tmp_path, before, after)
    assert ("version" in data) is (before is not None)
    assert restored.promise is Promise.BIT_EXACT


def test_real_data_that_change_between_two_starts_are_told(tmp_path):
    data = write(tmp_path / "data", {"a.txt": b"one"})
    before = hr.data_version(data)
    write(data, {"a.txt": b"longer"})
    _, restored = saved_and_restored(tmp_path / "run", {"train": before}, {"train": hr.data_version(data)})
    assert restored.promise is Promise.CLOSE
    assert restored.lost[0].startswith("data train: files ")


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({"path": "elsewhere", "source": "other.dvc", "commit": "aa"}, False),
        ({"digest": "9a"}, True),
        ({"fingerprint": "9a"}, True),
        ({"fingerprint": "9a", "has_content": True}, False),  # of another sort: it says nothing
        ({"kind": "dvc-lock", "digest": "9a"}, False),  # another tool's digest; the files are the same
        ({"kind": "none", "digest": None, "fingerprint": "9a"}, True),
        ({"digest": None}, False),
    ],
)
def test_what_counts_as_other_data(changes, is_told):
    before, after = version().as_dict(), version(**changes).as_dict()
    assert bool(differences(before, after)) is is_told
    assert bool(differences(after, before)) is is_told
    assert not differences(after, after)


def test_facts_of_ones_own_are_compared_one_by_one():
    before = {"train": version(), "license": "CC0", "rows": {"train": 3, "val": 1}}
    after = {"train": version(digest="9a"), "license": "MIT", "rows": {"train": 3, "val": 2}, "new": 1}
    assert differences(as_plain(before), as_plain(after)) == [
        "data license: CC0 when saved, MIT here",
        "data rows val: 1 when saved, 2 here",
        "data train: dvc 3f3f3f3f3f3f.. when saved, dvc 9a.. here",
    ]


def test_what_is_no_plain_value_is_refused_before_the_training(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be kept in a checkpoint"):
        Run(tmp_path, data={"train": object()})
