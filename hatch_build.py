"""Compiles the C files of the package when it is built, where that can be done; see `src/headrace/native.py`.

A wheel with libraries in it is for one platform, and for every Python of it; one without is for all. An editable
installation gets its libraries into the working tree, where git ignores them.
"""

from __future__ import annotations

import importlib.util
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("src") / "headrace"


class NativeBuildHook(BuildHookInterface):
    """Adds what could be compiled to the wheel, and says what could not."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files of a wheel; `version` is `standard` or `editable`."""
        native = _native(Path(self.root))
        if version != "editable":
            self.scratch = tempfile.TemporaryDirectory()  # until the hook is forgotten, after the wheel is written
            native.folder = Path(self.scratch.name)
        libraries, failures = native.build_all()
        for failure in failures:
            self.app.display_warning(f"not compiled, Python will do: {failure}")
        if version == "editable" or not libraries:
            return
        for library in libraries:
            build_data["force_include"][str(library)] = str(Path("headrace") / library.relative_to(native.folder))
        build_data["pure_python"] = False
        # Not the tag that hatchling infers: a library knows nothing of Python, so one wheel serves all versions.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"


def _native(root: Path) -> ModuleType:
    """Returns the module of the package, without the package and what it needs."""
    path = root / PACKAGE / "native.py"
    spec = importlib.util.spec_from_file_location("headrace_native", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
