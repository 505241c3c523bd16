"""The peers' virtual environments: made when first needed, from the pinned requirements in `peers/`, one per library.

They are kept in `.venvs/` until their requirement file changes. A library that cannot be installed is a row of the table
that says why, never the end of a run.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from benchmarks.regime import OWN_ENVIRONMENT

HERE = Path(__file__).parent
HOME = HERE / ".venvs"
INSTALL_TIMEOUT_S = 1200


class NotInstalled(Exception):
    """The environment could not be made; says why in one line."""


def peers() -> list[str]:
    """Libraries that have a requirement file; `photographs` is no peer, it has what makes the JPEG files."""
    return sorted({path.stem for path in (HERE / "peers").glob("*.txt")} - {"photographs"})


def python_of(library: str) -> str:
    """Returns the interpreter in which a library runs, after making its environment if need be.

    Raises:
        NotInstalled: with the last line that the installer said.
    """
    if library in OWN_ENVIRONMENT:
        return sys.executable
    requirements = HERE / "peers" / f"{library}.txt"
    if not requirements.exists():
        raise NotInstalled(f"there is no {requirements.relative_to(HERE)}")
    home = HOME / library
    python, stamp = home / "bin" / "python", home / "installed"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
        return str(python)
    HOME.mkdir(exist_ok=True)
    (HOME / ".gitignore").write_text("*\n", encoding="ascii")
    print(f"installing {library} (once)", file=sys.stderr, flush=True)
    _run([sys.executable, "-m", "venv", "--clear", str(home)])
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(requirements)])
    stamp.write_text(wanted, encoding="ascii")
    return str(python)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"not installed within {INSTALL_TIMEOUT_S} s") from None
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise NotInstalled(said[-1] if said else f"the installer ended with status {done.returncode}")
