"""The demo, step by step, in the order in which one meets these troubles."""

from __future__ import annotations

import pathlib
import time

from headrace.cli.demo import data, faults, resume, training
from headrace.cli.demo.pipeline import evaluation_loader
from headrace.cli.output import terminal_style
from headrace.cli.progress import bar, spinner
from headrace.doctor.diagnose import Options, diagnose
from headrace.doctor.report.model import Report
from headrace.doctor.report.text import render

__all__ = ["tell"]


class _Failed(Exception):
    """A step did not show what it promises; carries the sentence that says so."""


def tell(root: pathlib.Path, seed: int, *, stops_broken: bool = False) -> int:
    """Runs the demo, prints what happens, and returns 0 if everything held, else 1."""
    start = time.monotonic()
    try:
        digits = _write(root)
        _examine_healthy(root)
        _examine_broken(root, digits)
        if stops_broken:
            print("\nThe faults are left in. To see one of them, and to mend them all and go on:")
            print(f"  headrace replay {root / 'broken.py'}:make_loader {digits.row(faults.TRUNCATED)}")
            print(f"  headrace demo --dir {root}")
            return 0
        _mend(root, digits)
        run = _train(root, seed)
        _compare(root, seed, run)
    except _Failed as failure:
        print(f"\nThe demo failed: {failure}")
        return 1
    print(f"\nEverything held, in {time.monotonic() - start:.0f} seconds. Yours to look at and to change:")
    for path, what in (
        (root / "broken.py", "the loader that was examined"),
        (root / "train", "its data, and the training data of the run"),
        (run.state_path, "the loader's state at the stop"),
        (run.model_path, "model, optimizer and schedule at the stop"),
    ):
        print(f"  {path!s:<28} {what}")
    return 0


def _write(root: pathlib.Path) -> data.Digits:
    _title(1, "Real data")
    data.claim_folder(root)
    digits = data.load_digits()
    for _ in bar(data.write_digits(root, digits), "writing digits", len(digits)):
        pass
    data.write_labels(root, digits)
    num_test = sum(map(digits.is_held_out, range(len(digits))))
    num_train = len(digits) - num_test
    print(f"   {num_train:,} handwritten digits in {root / 'train'}, {num_test} in {root / 'test'}: PNG")
    num_crops = sum(1 for _ in bar(data.write_photographs(root), "writing photographs", data.NUM_CROPS))
    print(f"   {num_crops} crops of two photographs in {root / 'photos'}: JPEG")
    return digits


def _examine_healthy(root: pathlib.Path) -> None:
    _title(2, "A healthy loader gets no finding, random augmentation or not")
    report = _examine(root / "photos.py")
    if report.exit_status:
        raise _Failed("a loader without a fault was not found clean")


def _examine_broken(root: pathlib.Path, digits: data.Digits) -> None:
    _title(3, f"A broken one: {len(faults.FAULTY)} of its samples are at fault, each in its own way")
    faults.break_data(root, digits)
    report = _examine(root / "broken.py")
    named = {sample_id for finding in report.findings for sample_id in finding.sample_ids}
    broken = {digits.row(number) for number in faults.FAULTY}
    if named != broken:
        raise _Failed(f"samples {sorted(broken)} are broken, samples {sorted(named)} were named")


def _mend(root: pathlib.Path, digits: data.Digits) -> None:
    _title(4, "Mended: the four written again from the originals")
    faults.mend_data(root, digits)
    report = _examine(root / "broken.py")
    if report.exit_status:
        raise _Failed("the mended loader was not found clean")


def _train(root: pathlib.Path, seed: int) -> resume.Interrupted:
    _title(5, "Trained with headrace.DataLoader, and stopped in the middle of an epoch")
    run = resume.train_interrupted(root, seed, bar)
    num_bytes = run.state_path.stat().st_size
    print(f"   {training.EPOCHS} epochs, each image turned, zoomed and shifted anew")
    print(
        f"   stopped after {run.num_before:,} samples, in epoch {resume.STOP_EPOCH}, with {resume.WORKERS_BEFORE} workers"
    )
    print(f"   resumed with {resume.WORKERS_AFTER} worker, from {num_bytes} bytes of state and the saved model")
    accuracy = run.training.accuracy(evaluation_loader(root))
    print(f"   {accuracy:.1%} of the held-out digits are named rightly; the goal is {training.GOAL:.0%}")
    if accuracy < training.GOAL:
        raise _Failed(f"an accuracy of {accuracy:.1%} misses the goal of {training.GOAL:.0%}")
    return run


def _compare(root: pathlib.Path, seed: int, run: resume.Interrupted) -> None:
    _title(6, "Compared with a loader that nobody stopped, without workers")
    reference = resume.uninterrupted(root, seed, bar)
    for name, seen in (("stopped and resumed", run.delivered), ("never stopped", reference)):
        print(f"   {name:<20} {len(seen.ids):,} samples, order {seen.order_hash}, pixels {seen.pixels:08x}")
    difference = run.delivered.first_difference(reference)
    if difference is not None:
        raise _Failed(f"the resumed run did not get the same data: {difference}")
    print("   the same ids in the same order, and the same pixels after augmentation")


def _examine(script: pathlib.Path) -> Report:
    """Does what `headrace diagnose SCRIPT:make_loader --full` does, and says so."""
    target = f"{script}:make_loader"
    command = f"headrace diagnose {target} --full"
    width, is_coloured = terminal_style()
    print(f"   $ {command}\n")
    with spinner(f"examining {target}") as progress:
        report = diagnose(target, Options(full=True), command=command, progress=progress)
    print(render(report, width=width, color=is_coloured).rstrip("\n"))
    return report


def _title(number: int, text: str) -> None:
    _, is_coloured = terminal_style()
    line = f"{number}  {text}"
    print(f"\n\x1b[1m{line}\x1b[0m" if is_coloured else f"\n{line}", flush=True)
