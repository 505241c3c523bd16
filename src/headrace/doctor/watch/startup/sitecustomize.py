# ruff: noqa: INP001 - a folder on the path, no package
"""Runs while the interpreter of a watched script starts; its folder is on the path only there.

Everything else of the script, its arguments, `__main__`, its tracebacks, is then Python's own doing.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is not worth its time in each process
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100

# The site's own customisation comes first, as it would without us.
_this = sys.modules.pop("sitecustomize")
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except ModuleNotFoundError as _missing:
    if _missing.name != "sitecustomize":
        raise
finally:
    sys.modules.setdefault("sitecustomize", _this)

if os.environ.get("HEADRACE_WATCH"):
    try:
        from headrace.doctor.watch.starting import begin

        begin(os.environ["HEADRACE_WATCH"])
    except Exception as _error:  # another Python without headrace: the script runs, and is not seen
        if os.environ.get("HEADRACE_DEBUG"):
            sys.stderr.write(f"headrace: not watched: {type(_error).__name__}: {_error}\n")
