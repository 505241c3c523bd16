"""Which classes are counted: by an attribute, or by labels that follow the sorted folder."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.experiments.class_folders import AskClasses, follow_sorted

NAMES = st.lists(st.sampled_from(["ant", "bee", "cat", "dog", "Emu", "_fly", "gnu"]), min_size=2, unique=True)


@given(names=NAMES, hidden=st.booleans())
def test_labels_tell_whether_hidden_names_were_counted(names, hidden, tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    for name in [*names, ".cache"]:
        (root / name).mkdir()
    listing = sorted([*names, ".cache"])
    counted = listing if hidden else sorted(names)
    labelled = [(str(root / name / "0.npy"), counted.index(name)) for name in names]
    assert list(follow_sorted(labelled, listing, str(root))) == (listing if hidden else [])


@pytest.mark.parametrize(
    "labels",
    [[None, None], [1, 1], [0, 0], [2, 1], [7, 9]],
    ids=["no labels", "one label", "the same label", "another order", "numbers of another source"],
)
def test_labels_that_do_not_follow_the_folder_tell_nothing(labels, tmp_path):
    for name in (".cache", "a", "b"):
        (tmp_path / name).mkdir()
    labelled = [(str(tmp_path / name / "0.npy"), label) for name, label in zip("ab", labels, strict=True)]
    assert list(follow_sorted(labelled, [".cache", "a", "b"], str(tmp_path))) == []


CODE = """
class Rows(Base):
    size = 4
    CLASSES = CLASSES_HERE
    def __init__(self):
        self.ATTRIBUTE = self.CLASSES
    def __getitem__(self, index):
        return np.load("ROOT/" + "aabb"[index] + "/0.npy"), index

def make():
    return Rows()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attribute", "classes", "said_by"),
    [
        ("classes", [".cache", "a", "b"], "Rows.classes"),
        ("names", ["a", "b"], "Rows.names"),
        ("number_of", {"a": 1, "b": 2, ".cache": 0}, "Rows.number_of"),
        ("letters", ["a", "b", "elsewhere"], None),
        ("class_to_idx", {"yes": 0, "no": 1}, "Rows.class_to_idx"),
    ],
)
def test_lists_of_classes_are_found_by_the_folder_that_they_name(open_lab, tmp_path, attribute, classes, said_by):
    for name in (".cache", "a", "b"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for name in "ab":
        np.save(tmp_path / "data" / name / "0.npy", np.zeros(3))
    root = str(tmp_path / "data")
    code = CODE.replace("CLASSES_HERE", repr(classes)).replace("ATTRIBUTE", attribute).replace("ROOT", root)
    records = []
    labelled = tuple((f"{root}/{name}/0.npy", None) for name in "ab")
    open_lab(code).run(AskClasses(labelled=labelled), records.append)
    (found,) = records
    assert found.said_by == said_by
    if said_by is not None and "yes" not in classes:
        assert [one.name for one in found.classes] == sorted(classes)
        assert {one.name: one.num_files for one in found.classes}["a"] == 1
        assert all(one.kind == "folder" for one in found.classes)
    if "yes" in classes:
        assert {one.kind for one in found.classes} == {"nothing"}
