"""The cases of truth.toml as values, and the noise that some of them run beside."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator

HERE = pathlib.Path(__file__).parent
CASES = HERE / "cases"
TRUTH = HERE / "truth.toml"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One loop and what limits it. The keys are explained at the top of truth.toml."""

    file: str
    verdict: str
    cause: tuple[str, ...]
    because: str
    train: str = "make_step"
    also: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    without: tuple[tuple[str, str], ...] = ()
    noise: str | None = None
    needs: str | None = None
    may_be_inconclusive: bool = False

    @property
    def name(self) -> str:
        return self.file.removesuffix(".py")

    @property
    def text(self) -> str:
        return (CASES / self.file).read_text(encoding="utf-8")

    @property
    def text_without(self) -> str:
        """The same loop, the suspect taken away."""
        text = self.text
        for old, new in self.without:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} stands {text.count(old)} times in it, and not once")
            text = text.replace(old, new)
        return text

    def missing(self) -> str | None:
        """Why it cannot run here; None if it can."""
        if self.needs == "cuda":
            import torch

            return None if torch.cuda.is_available() else "there is no CUDA device"
        return None


def cases(only: Iterable[str] = ()) -> list[Case]:
    """Returns every case, or those whose name begins with one of the words given."""
    rows = tomllib.loads(TRUTH.read_text(encoding="utf-8"))["case"]
    found = [Case(**{key: _frozen(value) for key, value in row.items()}) for row in rows]
    wanted = tuple(only)
    return [case for case in found if not wanted or case.name.startswith(wanted)]


def _frozen(value):
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value


CPU_NOISE = """
import random, time
rng = random.Random(1)
while True:
    until = time.monotonic() + rng.uniform(0, 0.3)
    while time.monotonic() < until:
        pass
    time.sleep(rng.uniform(0, 0.9))
"""
DISK_NOISE = """
import os, random, tempfile, time
rng = random.Random(2)
with tempfile.TemporaryFile() as file:
    while True:
        file.seek(0)
        file.write(os.urandom(rng.randrange(1 << 22)))
        file.flush()
        os.fsync(file.fileno())
        time.sleep(rng.uniform(0, 0.5))
"""


@contextlib.contextmanager
def noise(kind: str | None) -> Iterator[None]:
    """Runs another program beside: it computes a quarter of the time, or it writes to the disk."""
    if kind is None:
        yield
        return
    program = {"cpu": CPU_NOISE, "disk": DISK_NOISE}[kind]
    with subprocess.Popen([sys.executable, "-c", program]) as running:
        try:
            yield
        finally:
            running.kill()
