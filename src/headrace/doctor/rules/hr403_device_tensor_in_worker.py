"""HR403 device-tensor-in-worker: code that workers run moves data to an accelerator."""

from __future__ import annotations

from headrace.doctor.evidence.objects import HeldObjects, SourceLine, SourceLines
from headrace.doctor.rule import Example, Finding, Fix, Rule


class DeviceTensorInWorker(Rule):
    """HR403."""

    code = "HR403"
    name = "device-tensor-in-worker"
    summary = "A data set or collate function that puts tensors on an accelerator although it runs in workers."
    rationale = """
        A forked worker cannot use CUDA once its parent has: "Cannot re-initialize CUDA in forked subprocess". A spawned one
        can, at the price of a context of some hundred megabytes per worker and of tensors that must be kept alive across
        processes. Most people meet the error, set `num_workers=0`, and load slowly from then on.

        It is no fault without workers, and moving a batch in the training loop is how it should be.
        """
    experiment = (
        "The source of data sets, transforms and the collate function is parsed, and what they hold is looked at."
    )
    needs = (SourceLines, HeldObjects)
    fix = Fix(
        text="Return tensors on the CPU, and move the batch in the loop; with pin_memory the copy overlaps computing.",
        safety="same data",
        snippet="loader = DataLoader(dataset, num_workers=4, pin_memory=True)\n"
        "for images, labels in loader:\n"
        "    images = images.to(device, non_blocking=True)",
    )
    references = ("pytorch#40403", "pytorch#77159", "ACE-Step#3", "Ultra-Fast-Lane-Detection-v2#160")

    def judge(self, source: SourceLines, held: HeldObjects) -> list[Finding]:
        """At most one finding."""
        if source.num_workers == 0:
            return []
        if held.device_tensors:
            path, device = held.device_tensors[0]
            return [
                Finding(
                    message=f"{path} is a tensor on {device}, and {source.num_workers} workers use it",
                    severity="error",
                    stage="transform",
                    where=path,
                    evidence={"tensors": [path for path, _ in held.device_tensors]},
                )
            ]
        lines = source.about("device-in-worker")
        if not lines:
            return []
        first = lines[0]
        return [
            Finding(
                message=f"{first.function} runs in {source.num_workers} workers and moves data to an accelerator: {first.text}",
                severity="warning",
                basis="static",
                confidence=0.85,
                stage="transform",
                where=first.where,
                evidence={"lines": [line.where for line in lines]},
            )
        ]

    sick = (
        Example(
            title="A data set that returns CUDA tensors",
            evidence=(
                SourceLines(
                    num_workers=4,
                    start_method="fork",
                    pin_memory=False,
                    num_files=1,
                    lines=(
                        SourceLine(
                            topic="device-in-worker",
                            where="data.py:22",
                            text="torch.from_numpy(image).cuda()",
                            function="__getitem__",
                        ),
                    ),
                ),
                HeldObjects(num_workers=4, start_method="fork"),
            ),
            message="__getitem__ runs in 4 workers and moves data to an accelerator: torch.from_numpy(image).cuda()",
        ),
        Example(
            title="Data that were put on the device beforehand",
            evidence=(
                SourceLines(num_workers=2, start_method="fork", pin_memory=False, num_files=1),
                HeldObjects(num_workers=2, start_method="fork", device_tensors=(("dataset.images", "cuda:0"),)),
            ),
            message="dataset.images is a tensor on cuda:0, and 2 workers use it",
        ),
    )
    healthy = (
        Example(
            title="Without workers",
            evidence=(
                SourceLines(
                    num_workers=0,
                    start_method="fork",
                    pin_memory=False,
                    num_files=1,
                    lines=(
                        SourceLine(
                            topic="device-in-worker", where="data.py:22", text="x.cuda()", function="__getitem__"
                        ),
                    ),
                ),
                HeldObjects(num_workers=0, start_method="fork"),
            ),
        ),
        Example(
            title="The loop moves the batch",
            evidence=(
                SourceLines(num_workers=2, start_method="fork", pin_memory=True, num_files=1),
                HeldObjects(num_workers=2, start_method="fork"),
            ),
        ),
    )
