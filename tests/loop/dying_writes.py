"""Saves a checkpoint again and again in children that are killed at the n-th time that they sync to the disk.

    python -m tests.loop.dying_writes FOLDER

Prints for each n, as JSON: how the child ended, and the step of the newest good checkpoint afterwards.
"""

import json
import os
import signal
import sys
import traceback

from tests.loop.sensitive import Run

from headrace.loop.checkpoint.folder import CheckpointFolder


def dies_at(folder, num):
    sync, count = os.fsync, 0

    def counted(descriptor):
        nonlocal count
        count += 1
        if count == num:
            os.kill(os.getpid(), signal.SIGKILL)
        sync(descriptor)

    run = Run(folder)
    run.checkpoint.restore(quiet=True)
    for _ in run.checkpoint.batches():
        run.checkpoint.step()
        break
    os.fsync = counted
    run.checkpoint.save()


def main():
    folder = sys.argv[1]
    first = Run(folder)
    first.checkpoint.save()
    first.checkpoint.close()
    print(json.dumps(["start", 0]))
    for num in range(1, 31):
        child = os.fork()
        if child == 0:
            try:
                dies_at(folder, num)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        refused = []
        found = CheckpointFolder(folder).newest_good(lambda path, error: refused.append(str(error)))
        print(json.dumps([os.waitstatus_to_exitcode(status), found[1].step, refused]), flush=True)


if __name__ == "__main__":
    main()
