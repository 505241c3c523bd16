"""FolderSource passes the exam; its order is stable; what would lose data silently is refused with a way out."""

import os
import pickle
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.source import FileRecord, FolderSource
from headrace.errors import ConfigurationError, SourceError
from headrace.testing.sources import SourceSuite

# Names in an order that a locale, a "natural" sort or a case-folding sort would change. "a-b" sorts before "a/" as
# text of whole paths, and after "a" as a class.
FILES = ["B/x.txt", "a/10.txt", "a/2.txt", "a/B.txt", "a/deep/er/1.txt", "a/é.txt", "a-b/1.txt", "b/x.txt"]
CLASSES = ["B", "a", "a-b", "b"]


def write(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"content of {path}")
    return root


@pytest.fixture
def root(tmp_path):
    return write(tmp_path / "data", *reversed(FILES))


class TestFolderSource(SourceSuite):
    @pytest.fixture
    def source(self, root):
        return FolderSource(root)

    @pytest.fixture
    def expected(self, root):
        return {
            path: FileRecord(
                id=path,
                path=str(root / path),
                data=f"content of {path}".encode(),
                label=CLASSES.index(path.split("/")[0]),
                class_name=path.split("/")[0],
            )
            for path in FILES
        }


class TestFolderSourceWithoutLabels(SourceSuite):
    @pytest.fixture
    def source(self, tmp_path):
        return FolderSource(write(tmp_path, "b.txt", "a/c.txt", "a.txt"), labels=False)

    @pytest.fixture
    def expected(self, tmp_path):
        return {
            path: FileRecord(
                id=path, path=str(tmp_path / path), data=f"content of {path}".encode(), label=None, class_name=None
            )
            for path in ["a.txt", "a/c.txt", "b.txt"]
        }


def ids(source):
    return [source.sample_id(row) for row in range(len(source))]


def test_classes_are_ranks_of_sorted_names(root):
    source = FolderSource(root)
    assert source.classes == CLASSES
    assert source.class_to_idx == {name: rank for rank, name in enumerate(CLASSES)}
    assert FolderSource(root, labels=False).class_to_idx == {}


NAME = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0", categories=["L", "N", "P"]), min_size=1, max_size=6
)


@given(st.lists(st.tuples(NAME, NAME), min_size=1, max_size=8))
def test_order_is_that_of_sorted(tmp_path_factory, names):
    pairs = sorted({(a, b) for a, b in names if not a.startswith(".") and not b.startswith(".")})
    if not pairs:
        return
    root = write(tmp_path_factory.mktemp("root"), *(f"{a}/{b}" for a, b in pairs))
    assert ids(FolderSource(root)) == [f"{a}/{b}" for a, b in pairs]
    shutil.rmtree(root)


def test_order_does_not_depend_on_the_file_system(root, monkeypatch):
    expected = ids(FolderSource(root))
    scandir = os.scandir

    class Backwards:
        def __init__(self, path):
            self.entries = sorted(scandir(path), key=lambda entry: entry.name, reverse=True)

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(os, "scandir", Backwards)
    assert ids(FolderSource(root)) == expected


def test_a_copy_of_the_data_is_the_same_data(root, tmp_path):
    copied = shutil.copytree(root, tmp_path / "elsewhere", copy_function=shutil.copyfile)
    assert FolderSource(copied).fingerprint() == FolderSource(root).fingerprint()
    assert FolderSource(copied) != FolderSource(root)  # the same data, but not the same place


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root, "a/3.txt"),
        lambda root: (root / "a/2.txt").unlink(),
        lambda root: (root / "a/2.txt").rename(root / "a/3.txt"),
        lambda root: (root / "a/2.txt").write_text("shorter"),
        lambda root: (root / "a").rename(root / "c"),
    ],
    ids=["added", "removed", "renamed", "resized", "class-renamed"],
)
def test_fingerprint_changes_with_the_data(root, change):
    before = FolderSource(root).fingerprint()
    change(root)
    assert FolderSource(root).fingerprint() != before


def test_fingerprint_changes_with_the_labels(root):
    prints = {
        FolderSource(root).fingerprint(),
        FolderSource(root, labels=False).fingerprint(),
        FolderSource(root, classes=[*CLASSES, "z"]).fingerprint(),
        FolderSource(root, classes=CLASSES[::-1]).fingerprint(),
    }
    assert len(prints) == 4


@pytest.mark.slow
def test_fingerprint_is_the_same_in_another_process(root):
    script = f"from headrace.engine.source import FolderSource; print(FolderSource({str(root)!r}).fingerprint())"
    printed = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "LC_ALL": "C.UTF-8"},
    ).stdout
    assert printed.strip() == FolderSource(root).fingerprint()


def test_is_a_value(root):
    source = FolderSource(root)
    assert pickle.loads(pickle.dumps(source)) == source
    assert hash(FolderSource(root)) == hash(source)
    assert repr(source) == f"FolderSource({str(root)!r}: 8 files, 4 classes)"


def test_survives_a_change_of_the_working_directory(root, monkeypatch, tmp_path):
    monkeypatch.chdir(root.parent)
    source = FolderSource("data")
    monkeypatch.chdir(tmp_path / "data" / "a")
    assert source.read_many([0])[0].data == b"content of B/x.txt"


def test_index_of_inverts_sample_id(root):
    source = FolderSource(root)
    assert [source.index_of(sample_id) for sample_id in ids(source)] == list(range(8))
    for unknown in ("a", "a/2", 3):
        with pytest.raises(ValueError):
            source.index_of(unknown)


def test_an_unreadable_file_keeps_its_own_error(root):
    source = FolderSource(root)
    (root / "a/2.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"a/2\.txt"):
        source.read_many([source.index_of("a/2.txt")])


# What is passed over.


def test_extensions_take_any_case_and_form(tmp_path):
    write(tmp_path, "a/1.PNG", "a/2.png", "a/3.jpg", "a/4.txt", "README.md")
    for extensions in ([".png", "JPG"], ("PNG", ".jpg")):
        assert ids(FolderSource(tmp_path, extensions=extensions)) == ["a/1.PNG", "a/2.png", "a/3.jpg"]
    assert ids(FolderSource(tmp_path, extensions="jpg")) == ["a/3.jpg"]


def test_hidden_files_and_litter_are_passed_over(root):
    write(root, "a/.DS_Store", "b/._x.txt", ".DS_Store", "a/Thumbs.db", "desktop.ini")
    assert ids(FolderSource(root)) == FILES


@pytest.mark.parametrize("ignore", [["notes"], "note*", ["notes/*", "notes"]])
def test_ignored_is_not_there(root, ignore):
    write(root, "notes/1.txt", "notes/.cache/x")
    assert ids(FolderSource(root, ignore=ignore)) == FILES


def test_a_name_with_the_signs_of_a_pattern_is_ignored_too(root):
    write(root, "a/x[1].txt")
    assert ids(FolderSource(root, ignore=["x[1].txt"])) == FILES


def test_ignore_takes_relative_paths(root):
    assert ids(FolderSource(root, ignore=["a/1*.txt", "a/deep"])) == [FILES[0], *FILES[2:4], *FILES[5:]]


def test_links_are_followed(root, tmp_path):
    elsewhere = write(tmp_path / "elsewhere", "1.txt")
    (root / "linked").symlink_to(elsewhere)
    (root / "a/linked.txt").symlink_to(elsewhere / "1.txt")
    source = FolderSource(root)
    assert {"linked/1.txt", "a/linked.txt"} < set(ids(source))
    assert source.read_many([source.index_of("linked/1.txt")])[0].data == b"content of 1.txt"


def test_classes_fix_the_labels(tmp_path):
    write(tmp_path, "b/1.txt", "c/1.txt")
    source = FolderSource(tmp_path, classes=["a", "c", "b"])
    assert [record.label for record in source.read_many([0, 1])] == [2, 1]
    assert source.classes == ["a", "c", "b"]


# What is refused: first lines, and the way out.


def refusal(*args, kind=SourceError, **options):
    with pytest.raises(kind) as caught:
        FolderSource(*args, **options)
    assert caught.value.do or kind is ConfigurationError
    return caught.value


def test_a_missing_root_names_the_nearest(root):
    error = refusal(root.parent / "dta")
    assert error.what == "the folder does not exist; did you mean 'data'?"
    assert error.where.path == str(root.parent / "dta")
    assert refusal(root / "none" / "at" / "all").what == "the folder does not exist"


def test_a_file_is_no_root(root):
    assert refusal(root / "a/2.txt").what == "the root is a file, not a folder"


def test_an_empty_root(tmp_path):
    assert refusal(tmp_path).what == "no data files in the folder"
    assert refusal(tmp_path, labels=False).what == "no data files in the folder"
    write(tmp_path, "a.txt")
    assert refusal(tmp_path, labels=False, extensions=".png").why == "no file below it ends in '.png'"


def test_a_flat_folder_says_how(tmp_path):
    error = refusal(write(tmp_path, "1.txt", "2.txt"))
    assert error.what == "no class folders: 2 data files lie directly in the root"
    assert "labels=False" in error.do[0]


def test_files_beside_the_classes_have_no_class(root):
    error = refusal(write(root, "labels.csv", "README.md"))
    assert error.what == "2 files lie beside the class folders and have no class: 'README.md', 'labels.csv'"
    assert ids(FolderSource(root, ignore=["README.md", "labels.csv"])) == FILES


@pytest.mark.parametrize("place", [".ipynb_checkpoints", "a/.ipynb_checkpoints", "a/deep/.cache"])
@pytest.mark.parametrize("labels", [True, False])
def test_hidden_folders(root, place, labels):
    write(root, f"{place}/2-checkpoint.txt")
    error = refusal(root, labels=labels)
    assert error.what == f"hidden folder among the data: {place!r}"
    assert error.where.path == str(root / place)
    assert ids(FolderSource(root, labels=labels, ignore=[place.split("/")[-1]])) == ids(
        FolderSource(root, labels=labels, ignore=[place])
    )


def test_empty_class_folders(root):
    (root / "empty/below").mkdir(parents=True)
    error = refusal(root)
    assert error.what == "class folder without data: 'empty'"
    assert FolderSource(root, ignore=["empty"]).classes == CLASSES
    shutil.rmtree(root / "empty")
    write(root, "images/1.png")
    assert refusal(root, extensions=".txt").why == "no file below it ends in '.txt'"


def test_a_folder_that_is_not_in_classes(root):
    error = refusal(root, classes=["B", "a", "ab", "b"])
    assert error.what == "class folder that is not in `classes`: 'a-b'; did you mean 'ab'?"


def test_arguments_that_do_not_fit(root):
    assert "labels=False" in refusal(root, kind=ConfigurationError, labels=False, classes=["a"]).what
    assert "twice: 'a'" in refusal(root, kind=ConfigurationError, classes=["a", "b", "a"]).what


def test_broken_links(root):
    (root / "a/lost.txt").symlink_to("../annex/objects/1")
    error = refusal(root)
    assert error.what == "'a/lost.txt' is a link to a file that is not there: '../annex/objects/1'"
    assert len(FolderSource(root, ignore="lost.txt")) == 8


def test_pipes(root):
    os.mkfifo(root / "a/pipe")
    assert refusal(root).what == "'a/pipe' is neither a file nor a folder"


def test_links_back_to_a_folder_above(root):
    (root / "a/deep/loop").symlink_to(root / "a")
    error = refusal(root)
    assert error.what == "'a/deep/loop' is a link back to a folder above it"
    assert ids(FolderSource(root, ignore=["loop"])) == FILES


def test_names_that_are_not_text(root):
    (root / os.fsdecode(b"a/\xff.txt")).touch()
    error = refusal(root)
    assert error.what == r"a file name is not valid UTF-8: b'a/\xff.txt'"


def test_a_folder_that_cannot_be_listed(root, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)  # the tests may run as root, who may list anything
    error = refusal_without_do(root)
    assert error.what == "cannot list the folder: Permission denied"
    assert error.where.path == str(root)


def refusal_without_do(root):
    with pytest.raises(SourceError) as caught:
        FolderSource(root)
    return caught.value
