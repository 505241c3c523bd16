"""Hooks see calls and leave no trace: not in tracebacks, not in signatures, not after they are taken away."""

from __future__ import annotations

import inspect
import traceback

import pytest

from headrace.doctor.watch.hooks import Hooks


def make():
    class Base:
        def __init__(self, first, *, second=2):
            self.value = first

        def step(self):
            """Says so."""
            if self.value == 0:
                raise ValueError("zero")
            if self.value < 0:
                raise StopIteration
            return self.value

    class Derived(Base):
        def step(self):
            return super().step() + 100

    return Base, Derived


@pytest.fixture
def hooks():
    made = Hooks()
    yield made
    made.remove()


def frames_of(call):
    try:
        call()
    except Exception as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)], type(error)
    raise AssertionError("it should fail")


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("kind", ["before", "after"])
def test_an_exception_passes_without_a_frame_of_ours(hooks, kind, value):
    base, _ = make()
    plain = frames_of(lambda: base(value).step())
    if kind == "before":
        hooks.before(base, "step", lambda _: None)
    else:
        hooks.after(base, "step", lambda _, result: result)
    assert frames_of(lambda: base(value).step()) == plain


def test_before_and_after_see_each_call_also_through_super(hooks):
    base, derived = make()
    seen = []
    hooks.before(base, "step", lambda one: seen.append(("before", one.value)))
    assert derived(3).step() == 103
    hooks.after(base, "step", lambda one, result: seen.append(("after", result)) or result)
    assert base(4).step() == 4
    assert seen == [("before", 3), ("before", 4), ("after", 4)]


def test_name_signature_and_documentation_are_those_of_the_function(hooks):
    base, _ = make()
    function, signature = base.step, inspect.signature(base.__init__)
    hooks.before(base, "step", lambda _: None)
    hooks.before(base, "__init__", lambda _: None)
    assert base.step is function
    assert inspect.signature(base.__init__) == signature
    assert inspect.getdoc(base.step) == "Says so."
    assert base(1).value == 1


def test_an_attribute_keeps_its_value_where_it_was(hooks):
    base, _ = make()
    old, seen = base(1), []
    hooks.attribute(base, "value", read=lambda one: seen.append("read"), written=lambda one, value: seen.append(value))
    new = base(2)
    assert (old.value, new.value) == (1, 2)
    assert vars(new) == {"value": 2}
    assert seen == [2, "read", "read"]
    del new.value
    with pytest.raises(AttributeError):
        _ = new.value
    hooks.remove()
    assert (old.value, vars(base).get("value")) == (1, None)


def test_everything_is_as_before_once_hooks_are_removed():
    base, _ = make()
    before = dict(vars(base))
    hooks = Hooks()
    hooks.before(base, "step", lambda _: None)
    hooks.after(base, "step", lambda _, result: result)
    hooks.attribute(base, "value")
    hooks.replace(base, "new", 1)
    hooks.remove()
    assert dict(vars(base)) == before


def test_a_hook_of_somebody_else_that_came_later_stays():
    base, _ = make()
    hooks = Hooks()
    hooks.before(base, "step", lambda _: None)
    theirs = lambda self: "theirs"  # noqa: E731
    base.step = theirs
    hooks.remove()
    assert base.step is theirs
