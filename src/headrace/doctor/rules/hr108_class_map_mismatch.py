"""HR108 class-map-mismatch: the same number means another class in another split."""

from __future__ import annotations

from headrace.doctor.evidence.splits import ClassMap, ClassMaps
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing, verb


def _map(split: str, *names: str, start: int = 0) -> ClassMap:
    return ClassMap(
        split=split,
        said_by="ImageFolder.class_to_idx",
        numbers=tuple((name, start + number) for number, name in enumerate(names)),
    )


class ClassMapMismatch(Rule):
    """HR108."""

    code = "HR108"
    name = "class-map-mismatch"
    summary = "Splits that number their classes differently, or evaluate classes that were never trained on."
    rationale = """
        Data sets that number their classes by the folders or labels they find do so for each split alone. If one
        class is missing in the validation part, every class behind it gets another number: training looks well,
        validation is at chance, and nothing fails. Names are sorted as texts, so "10" comes before "2", which surprises
        those who read the number as the class.

        It is no fault if a split lacks some classes and the numbers of the others agree.
        """
    experiment = """
        The maps that the data sets of all loaders carry (`class_to_idx`, `classes` and the like) are compared. No
        sample is read.
        """
    needs = (ClassMaps,)
    fix = Fix(
        text="Make the map once, from the training split, and hand it to every split.",
        safety="changes the numbers of classes in the other splits; scores from before were wrong",
        snippet="names = sorted(entry.name for entry in os.scandir(train_root))\n"
        "class_to_idx = {name: number for number, name in enumerate(names)}\n"
        "val_set = Photos(val_root, class_to_idx=class_to_idx)",
    )
    references = ("pytorch-image-models#957", "ultralytics#13936", "pytorch#22566", "DeepForest#1147")

    def judge(self, seen: ClassMaps) -> list[Finding]:
        """One finding per split that disagrees with the first; a hint if names of numbers are sorted as texts."""
        if not seen.maps:
            return []
        first, *others = seen.maps
        found = [finding for other in others if (finding := self._compared(first, other)) is not None]
        return found or self._sorted_as_text(first)

    def _compared(self, first: ClassMap, other: ClassMap) -> Finding | None:
        ours, theirs = dict(first.numbers), dict(other.numbers)
        moved = [name for name in theirs if name in ours and ours[name] != theirs[name]]
        unknown = [name for name in theirs if name not in ours]
        missing = [name for name in ours if name not in theirs]
        if moved:
            name = moved[0]
            cause = f"; {other.split} lacks {listing(missing, 3)}" if missing else ""
            message = (
                f"{len(moved):,} of {len(theirs):,} classes have another number in {other.split} than in {first.split}: "
                f"{name} is {ours[name]} in {first.split} and {theirs[name]} in {other.split}{cause}"
            )
        elif unknown and set(ours) & set(theirs):
            message = (
                f"{other.split} has {verb(len(unknown), 'a class', 'classes')} that {first.split} lacks: "
                f"{listing(unknown, 3)}"
            )
        else:
            return None
        return Finding(
            message=message,
            severity="error" if moved else "warning",
            confidence=1.0 if moved else 0.8,
            basis="static",
            stage="read",
            where=f"{other.split}: {other.said_by}",
            evidence={
                "moved": {name: [ours[name], theirs[name]] for name in moved[:10]},
                "only_in_" + first.split: missing[:10],
                "only_in_" + other.split: unknown[:10],
            },
        )

    @staticmethod
    def _sorted_as_text(only: ClassMap) -> list[Finding]:
        numbers = [(name, number) for name, number in only.numbers if name.isdecimal()]
        if len(numbers) < len(only.numbers) or [int(name) for name, _ in numbers] == sorted(
            int(name) for name, _ in numbers
        ):
            return []
        name, number = next((name, number) for name, number in numbers if int(name) != number)
        return [
            Finding(
                message=f"classes named by numbers are sorted as texts: class {name!r} has number {number}",
                severity="info",
                confidence=0.7,
                basis="static",
                stage="read",
                where=only.said_by,
            )
        ]

    sick = (
        Example(
            title="A class without validation samples",
            evidence=(ClassMaps(maps=(_map("train", "ape", "bee", "cat"), _map("val", "ape", "cat"))),),
            message="1 of 2 classes have another number in val than in train: cat is 2 in train and 1 in val; val lacks bee",
        ),
        Example(
            title="A class that is only evaluated",
            evidence=(ClassMaps(maps=(_map("train", "ape", "bee"), _map("test", "ape", "bee", "yak"))),),
            message="test has a class that train lacks: yak",
        ),
        Example(
            title="Classes that are numbers",
            evidence=(ClassMaps(maps=(_map("", "0", "1", "10", "2"),)),),
            message="classes named by numbers are sorted as texts: class '10' has number 2",
        ),
    )
    healthy = (
        Example(
            title="Equal maps",
            evidence=(ClassMaps(maps=(_map("train", "ape", "bee"), _map("val", "ape", "bee"))),),
        ),
        Example(
            title="A split without the last classes",
            evidence=(ClassMaps(maps=(_map("train", "ape", "bee", "cat"), _map("val", "ape", "bee"))),),
        ),
        Example(title="No maps", evidence=(ClassMaps(maps=()),)),
    )
