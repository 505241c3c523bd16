"""For Lightning's own loop: what its checkpoints leave out, added by a callback.

    from headrace.loop.lightning import ExactResume

    trainer = lightning.Trainer(callbacks=[ExactResume(), ModelCheckpoint(every_n_train_steps=100)])
    trainer.fit(module, hr.DataLoader(...), ckpt_path="last")

Lightning saves model, optimizers, schedulers and where its loop is; it asks the loader for its place if the loader can say it,
as headrace's can. It does not save random state, so dropout and noise differ after a resume. With this callback and
headrace's loader a resumed run is the run that was never interrupted, to the last bit, if its steps repeat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.errors import MissingExtra
from headrace.loop.checkpoint import tree
from headrace.loop.checkpoint.copies import copied
from headrace.loop.checkpoint.parts import Randomness

try:
    from lightning.pytorch import Callback
except ImportError as error:
    raise MissingExtra("headrace.loop.lightning needs Lightning", do="pip install lightning") from error

__all__ = ["ExactResume"]


class ExactResume(Callback):  # type: ignore[misc, unused-ignore]
    """Keeps random state in Lightning's checkpoints, and sets it before the first step of a resumed run.

    Each rank keeps its own in memory; Lightning writes rank 0's callbacks only, so with several ranks, where each draws its
    own dropout, a resumed run is not exact, and says so nowhere: use one rank, or `headrace.Checkpointer`.

    Args:
        generators: Generators of one's own by name, as in `headrace.Checkpointer`.
    """

    def __init__(self, generators: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._random = Randomness(generators or {})
        self._saved: Any = None

    def state_dict(self) -> dict[str, Any]:
        """Returns random state as it is when Lightning saves."""
        # Taken apart, because Lightning reads its checkpoints as weights only, and arrays of numpy are none.
        skeleton, tensors = tree.split(copied(self._random.state()), "random")
        return {"skeleton": json.dumps(skeleton), "tensors": tensors}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Remembers random state until the first step."""
        self._saved = tree.join(json.loads(state_dict["skeleton"]), state_dict["tensors"])

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002 - Lightning's signature
        """Sets random state before the first step of a resumed run: what came before it has drawn from it."""
        saved, self._saved = self._saved, None
        if saved is not None:
            self._random.load(saved)
