"""What may be changed between epochs is found in source: methods and loops that write what samples are made with."""

import textwrap

import pytest

from headrace.doctor.walks.changes import find_changes


@pytest.fixture
def found(tmp_path, monkeypatch):
    """The candidates of `make()` in a user's file, as {name: (attributes, is_between_epochs)}."""

    def find(code, name="candidates"):
        script = tmp_path / f"{name}.py"
        script.write_text(textwrap.dedent(code))
        monkeypatch.syspath_prepend(tmp_path)
        module = __import__(name)
        monkeypatch.delitem(__import__("sys").modules, name)
        __import__("sys").modules[name] = module  # inspect finds the source of a class by its module
        changes = find_changes(module.make(), script)
        return {f"{change.path}.{change.name}": (change.attributes, change.is_between_epochs) for change in changes}

    return find


def test_methods_that_write_what_samples_read(found):
    assert found(
        """
        class Data:
            def __init__(self):
                self.epoch, self.seen, self.pairs = 0, 0, []
            def set_epoch(self, epoch):
                self.epoch = epoch
            def use(self, level):
                self.pairs.append(level)
            def unrelated(self):
                self.other = 1
            def _private(self):
                self.epoch = 3
            def two(self, a, b):
                self.epoch = a + b
            def length(self):
                return 2 + self.epoch
            def __len__(self):
                return 3
            def __getitem__(self, index):
                self.seen += 1
                return self.length(), self.pairs
        def make():
            return Data()
        """,
        "methods",
    ) == {"dataset.set_epoch": (("epoch",), True), "dataset.use": (("pairs",), False)}


def test_attributes_that_a_loop_sets_from_outside(found):
    assert found(
        """
        class Crop:
            def __init__(self):
                self.scale, self.fixed = 1.0, 2
            def __call__(self, x):
                return x * self.scale * self.fixed
        class Data:
            def __init__(self):
                self.transform = Crop()
            def __getitem__(self, index):
                return self.transform(index)
        def make():
            data = Data()
            data.transform.fixed = 3
            return data
        def train():
            data = make()
            for epoch in range(3):
                data.transform.scale *= 0.9
        """,
        "outside",
    ) == {"dataset.transform.scale": (("scale",), True)}


def test_what_a_loop_calls_is_done_between_epochs(found):
    assert found(
        """
        class Data:
            def __init__(self):
                self.rows = [1, 2]
            def draw(self):
                self.rows = self.rows[::-1]
            def flip(self):
                self.rows.reverse()
            def __getitem__(self, index):
                return self.rows[index]
        def make():
            return Data()
        def train(data):
            for epoch in range(3):
                data.draw()
        """,
        "calls",
    ) == {"dataset.draw": (("rows",), True), "dataset.flip": (("rows",), False)}


def test_a_data_set_without_source_has_no_candidates():
    assert find_changes([1, 2, 3]) == []
