"""Real training code of well-known libraries, untouched and with a fault in it, and what the doctor must say of each.

    <library>/case.toml    what is expected, in the words of ../corpus/corpus.py
    <library>/*.py         the code: the library's own loaders, transforms and trainers, on data that the file makes

`make real` makes an environment for it in benchmarks/.venvs/real and runs all of it. The libraries take gigabytes, so
this is no part of `make test`. `python tests/real/run.py timm/recipe` runs the cases whose names begin so.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "corpus"))

import corpus  # noqa: E402

if __name__ == "__main__":
    sys.exit(corpus.main(HERE))
