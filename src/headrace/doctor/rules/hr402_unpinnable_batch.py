"""HR402 unpinnable-batch: pin_memory=True, and tensors that it does not reach."""

from __future__ import annotations

from headrace.doctor.evidence.batches import Pinning
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing, verb


class UnpinnableBatch(Rule):
    """HR402."""

    code = "HR402"
    name = "unpinnable-batch"
    summary = "A loader with pin_memory=True whose batches are of a class that torch does not know how to pin."
    rationale = """
        Torch pins tensors, and looks for them in lists, tuples, named tuples and mappings. A batch of a class of one's
        own it hands on as it is, without a word: the tensors stay in pageable memory, the copy to the device waits for
        the driver's own buffer, and `non_blocking=True` does not overlap with anything.

        It is no fault if the class has a `pin_memory` method that pins its tensors and returns the batch, or if
        `pin_memory` is off.
        """
    experiment = """
        One batch is drawn without workers, and the installed torch's own function walks it while `Tensor.pin_memory` only
        notes that it was called. Nothing is pinned, and no device is needed.
        """
    needs = (Pinning,)
    fix = Fix(
        text="Give the class a `pin_memory` method, or let collate return a dict.",
        safety="same data; the pinned copy takes host memory that cannot be swapped out",
        snippet="class Batch:\n    def pin_memory(self):\n        self.images = self.images.pin_memory()\n"
        "        self.labels = self.labels.pin_memory()\n        return self",
    )
    references = ("mmdetection#11417", "ace#628", "yolov3#1713")

    def judge(self, seen: Pinning) -> list[Finding]:
        """At most one finding."""
        holders = [name for name in seen.holders if name]
        if not seen.is_wanted or not seen.unreached or not holders:
            return []
        num = len(seen.unreached)
        return [
            Finding(
                message=f"pin_memory=True does not reach {num} of {seen.num_tensors} tensors of a batch "
                f"({listing(seen.unreached, 3)}): torch {seen.torch} does not look into {' and '.join(holders)}, which has no "
                f"pin_memory method that pins {verb(num, 'it', 'them')}",
                severity="warning",
                confidence=1.0,
                basis="experiment",
                stage="transfer",
                where=holders[0],
                evidence={"unreached": list(seen.unreached[:16]), "num_tensors": seen.num_tensors, "torch": seen.torch},
            )
        ]

    sick = (
        Example(
            title="A dataclass",
            evidence=(
                Pinning(
                    is_wanted=True, torch="2.13.0", num_tensors=2, unreached=(".images", ".labels"), holders=("Batch",)
                ),
            ),
            message="pin_memory=True does not reach 2 of 2 tensors of a batch (.images, .labels): torch 2.13.0 does not look "
            "into Batch, which has no pin_memory method that pins them",
        ),
        Example(
            title="A list of boxes objects inside a dict",
            evidence=(
                Pinning(
                    is_wanted=True, torch="2.13.0", num_tensors=3, unreached=("['boxes'][0].xy",), holders=("Boxes",)
                ),
            ),
            message="pin_memory=True does not reach 1 of 3 tensors of a batch (['boxes'][0].xy): torch 2.13.0 does not look "
            "into Boxes, which has no pin_memory method that pins it",
        ),
    )
    healthy = (
        Example(
            title="A dict, or a class that pins itself",
            evidence=(Pinning(is_wanted=True, torch="2.13.0", num_tensors=2, unreached=(), holders=()),),
        ),
        Example(
            title="Pinning is off",
            evidence=(Pinning(is_wanted=False, torch="2.13.0", num_tensors=0, unreached=(), holders=()),),
        ),
    )
