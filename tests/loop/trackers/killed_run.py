"""A run that logs and is killed: `killed_run.py TRACKER FOLDER RESUMED_AT|none LAST DIE|finish`; its state rides in a file."""

import importlib.util
import json
import os
import pathlib
import signal
import sys

from headrace.loop.trackers import RunInfo


def main():
    spec = importlib.util.spec_from_file_location("histories", pathlib.Path(__file__).with_name("histories.py"))
    histories = importlib.util.module_from_spec(spec)
    sys.modules["histories"] = histories
    spec.loader.exec_module(histories)

    name, folder, resumed_at, last, end = sys.argv[1:]
    folder = pathlib.Path(folder)
    resumed_at = None if resumed_at == "none" else int(resumed_at)
    tracker = next(kept for kept in histories.KEPT if kept.name == name).make()
    state = folder / "state.json"
    if resumed_at is not None:
        tracker.load_state_dict(json.loads(state.read_text(encoding="utf-8")))
    tracker.start(RunInfo(name="digits", folder=folder, config={"lr": 0.1}, resumed_at=resumed_at))
    for step in range((resumed_at or 0) + 1, int(last) + 1):
        tracker.log({"loss": histories.value("loss", step)}, step)
        if step == 4:  # a checkpoint
            state.write_text(json.dumps(tracker.state_dict()), encoding="utf-8")
    if end == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    tracker.finish("finished")


if __name__ == "__main__":
    main()
