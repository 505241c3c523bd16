"""What the source says: devices in code that workers run, loops that run while importing, copies that do not block."""

import textwrap

import pytest

from headrace.doctor.experiments.source_lines import find_lines


def topics(text, collate=None):
    return [
        (line.topic, int(line.where.rpartition(":")[2])) for line in find_lines(textwrap.dedent(text), "a.py", collate)
    ]


@pytest.mark.parametrize(
    "body",
    [
        "return torch.tensor(index).cuda()",
        "return torch.tensor(index).to('cuda:1')",
        "return torch.tensor(index).to(device)",
        "return torch.tensor(index).to(device=device, non_blocking=False)",
        "return torch.tensor(index, device=device)",
        "return torch.tensor(index).to(torch.device('mps'))",
    ],
)
def test_a_device_in_code_that_workers_run_is_seen(body):
    text = f"""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    class Rows(Dataset):
        def __getitem__(self, index):
            {body}
    """
    assert topics(text) == [("device-in-worker", 5)]


@pytest.mark.parametrize(
    "body",
    [
        "return torch.tensor(index).to(torch.float32)",
        "return torch.tensor(index).to('cpu')",
        "return torch.tensor(index).to(self.dtype)",
        "return torch.cuda.is_available()",
        "return torch.tensor(index, dtype=torch.long)",
    ],
)
def test_other_calls_are_not(body):
    assert topics(f"class Rows(Dataset):\n    def __getitem__(self, index):\n        {body}\n") == []


def test_methods_that_getitem_calls_count_and_models_and_training_do_not():
    text = """
    class Rows(Dataset):
        def __getitem__(self, index):
            return self._load(index)
        def _load(self, index):
            return torch.zeros(3).cuda()
        def preload(self):
            return torch.zeros(3).cuda()
    class Net(nn.Module):
        def __call__(self, x):
            return x.cuda()
    def train(x):
        return x.cuda()
    """
    assert topics(text) == [("device-in-worker", 6)]


def test_the_loaders_own_collate_function_runs_in_workers():
    text = "def join(rows):\n    return torch.stack(rows).cuda()\n"
    assert topics(text) == []
    assert topics(text, collate="join") == [("device-in-worker", 2)]


LOADER = "loader = DataLoader(data, num_workers=2)\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (LOADER + "for batch in loader: pass", 2),
        (LOADER + "for step, batch in enumerate(tqdm(loader)): pass", 2),
        (LOADER + "first = next(iter(loader))", 2),
        (LOADER + "sums = [batch.sum() for batch in loader]", 2),
        (LOADER + "def train():\n    for batch in loader: pass\ntrain()", 3),
        (LOADER + "for epoch in range(3):\n    for batch in loader: pass", 3),
    ],
)
def test_a_loop_that_runs_while_importing_is_seen(text, line):
    assert topics(text) == [("unguarded-loop", line)]


@pytest.mark.parametrize(
    "text",
    [
        LOADER + "if __name__ == '__main__':\n    for batch in loader: pass",
        LOADER + "def train():\n    for batch in loader: pass\nif __name__ == '__main__':\n    train()",
        "loader = DataLoader(data, num_workers=0)\nfor batch in loader: pass",
        "loader = DataLoader(data)\nfor batch in loader: pass",
        LOADER + "for row in rows: pass",
    ],
)
def test_guarded_loops_and_loaders_without_workers_are_not(text):
    assert topics(text) == []


def test_copies_that_do_not_block():
    assert topics("x = x.to(d, non_blocking=True)\ny = y.to(d, non_blocking=False)\nz.cuda(non_blocking=True)") == [
        ("non-blocking", 1),
        ("non-blocking", 3),
    ]


def test_what_does_not_parse_says_nothing():
    assert find_lines("def (", "a.py") == []
