"""Errors: each one survives pickling with all it knows, and says what, where, why and what to do."""

import copy
import pickle

import pytest

from headrace import errors

KINDS = [
    value
    for value in (getattr(errors, name) for name in errors.__all__)
    if isinstance(value, type) and issubclass(value, errors.HeadraceError)
]
WHERE = errors.Where(
    sample_id="cats/7.png",
    index=1017,
    path="data/train/cats/7.png",
    stage="crop (train.py:12)",
    field="image",
    epoch=3,
    position=902118,
    rank=2,
    worker=5,
    seed=11,
)


class TwoArguments(errors.DataError):
    """A subclass as users write them: its constructor cannot be called with one message."""

    def __init__(self, path, size):
        super().__init__(f"{path} has {size} bytes", why="made up")
        self.path = path
        self.size = size


def full(kind):
    error = kind("what happened", where=WHERE, why="because", do=["first", "second"])
    error.extra = {"found": 1}
    error.add_note("a note of the user")
    return error


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling_with_all_fields_and_notes(kind, protocol):
    error = full(kind)
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)
    assert again.__notes__ == ["a note of the user"]
    assert again.where == WHERE


def test_an_error_whose_constructor_takes_two_arguments_survives_too():
    again = pickle.loads(pickle.dumps(TwoArguments("a.png", 3)))
    assert (again.path, again.size, again.what, again.why) == ("a.png", 3, "a.png has 3 bytes", "made up")
    assert str(copy.deepcopy(again)) == str(again)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_class_has_a_sentence_and_a_row_in_the_tree_at_the_top(kind):
    assert kind.__doc__.rstrip().endswith(".")
    rows = [line for line in errors.__doc__.splitlines() if kind.__name__ in line.replace("─", " ").split()]
    assert rows, f"{kind.__name__} is not in the tree"
    for parent in kind.__bases__:
        if parent is not Exception and not issubclass(parent, errors.HeadraceError):
            assert f"also {parent.__name__}" in rows[0]


def test_names_of_the_module_are_sorted():
    assert errors.__all__ == sorted(errors.__all__)


def test_a_message_says_what_where_why_and_what_to_do():
    assert str(full(errors.SourceError)) == (
        "what happened\n"
        "  where: sample cats/7.png (index 1,017), data/train/cats/7.png | stage crop (train.py:12) | field image"
        " | epoch 3, position 902,118 | rank 2, worker 5\n"
        "  why:   because\n"
        "  do:    first\n"
        "  do:    second"
    )


def test_what_is_not_known_is_left_out():
    assert str(errors.SourceError("the folder is empty")) == "the folder is empty"
    assert str(errors.Where(sample_id=4, index=4)) == "sample 4"
    assert str(errors.Where()) == ""


def test_a_failure_of_user_code_keeps_its_type_and_gains_one_note():
    error = KeyError("label")
    errors.annotate(error, WHERE)
    errors.annotate(error, errors.Where(sample_id="someone else"))  # an outer place; the innermost one stays
    assert type(error) is KeyError
    (note,) = error.__notes__
    assert note.startswith("headrace: while loading\n  where: sample cats/7.png (index 1,017)")
    assert "loader.replay('cats/7.png', epoch=3)" in note
    assert "headrace replay TARGET 'cats/7.png' --epoch 3 --seed 11" in note
    assert error.headrace_where == WHERE
    assert pickle.loads(pickle.dumps(error)).__notes__ == [note]


def test_an_error_with_slots_still_gets_the_note():
    class Slotted(Exception):
        __slots__ = ()

    error = Slotted()
    errors.annotate(error, WHERE, do="look")
    assert error.__notes__[0].endswith("do:    look")


def test_a_quote_in_an_id_does_not_break_the_command_to_paste():
    assert "headrace replay TARGET 'it'\\''s.png' --epoch 0" in errors.Where(sample_id="it's.png").replay


@pytest.mark.parametrize(
    ("name", "expected"),
    [("num_worker", "; did you mean 'num_workers'?"), ("zzzz", ""), ("", "")],
)
def test_the_nearest_known_name_is_suggested(name, expected):
    assert errors.nearest(name, ["num_workers", "seed"]) == expected
