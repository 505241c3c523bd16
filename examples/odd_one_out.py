"""The error that everybody meets first: four images, one of them grey, and a stack that fails without saying which.

    headrace diagnose examples/odd_one_out.py:odd_shape

names the odd sample before anything is stacked. What to do with it is the user's decision: convert it, or refuse it.
Both are below, and so is a fault that stacks well and trains badly: a label that no class has.
"""

import dataclasses

import torch
from torch.utils.data import DataLoader

import headrace as hr

CONTRACT = hr.Contract(
    fields=(
        hr.Field(name="image", kind="tensor", dtype="float32", shape=(3, 16, 16), axes="CHW"),
        hr.Field(name="label", kind="number", role="target", num_classes=4),
    ),
    num_samples=4,
)


GREY_AMONG_COLOUR = (3, 3, 1, 3)


class Leaves:
    """Four records: an image and the number of its tree."""

    classes = ("oak", "elm", "ash", "fir")

    def __init__(self, channels=(3, 3, 3, 3), labels=(0, 1, 2, 3)):
        self.images = [torch.full((count, 16, 16), row / 4) for row, count in enumerate(channels)]
        self.labels = labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return {"image": self.images[index], "label": self.labels[index]}


def odd_shape():
    """Three images [3, 16, 16], and one [1, 16, 16]."""
    return DataLoader(Leaves(channels=GREY_AMONG_COLOUR), batch_size=4)


def odd_target():
    """Four images [3, 16, 16]; the last label is 4, and the classes are 0 to 3."""
    return DataLoader(Leaves(labels=(0, 1, 2, 4)), batch_size=4)


def to_colour(sample):
    """The first decision: a grey image becomes a colour image."""
    return {**sample, "image": sample["image"].expand(3, -1, -1)}


def converted():
    """All four, in one batch [4, 3, 16, 16]. A transform that changes a shape must be allowed to by the contract."""
    plan = hr.Plan.of(Leaves(channels=GREY_AMONG_COLOUR)).map(to_colour)
    return hr.DataLoader(plan, batch_size=4, contract=dataclasses.replace(CONTRACT, may_reshape=True))


def refused():
    """The other decision: three in the batch, and the fourth in the quarantine, by name."""
    return hr.DataLoader(
        Leaves(channels=GREY_AMONG_COLOUR), batch_size=4, contract=CONTRACT, on_error=hr.Skip(max_count=1)
    )


def main():
    try:
        next(iter(hr.DataLoader(Leaves(channels=GREY_AMONG_COLOUR), batch_size=4)))
    except Exception as error:
        print(f"as it is:  {type(error).__name__}")
        print(*(f"           {line}" for line in str(error).splitlines()), sep="\n")

    (batch,) = converted()
    print(f"converted: {list(batch['image'].shape)} {batch.sample_ids}")

    loader = refused()
    (batch,) = loader
    print(
        f"refused:   {list(batch['image'].shape)} {batch.sample_ids}, in quarantine: {loader.quarantine[0].sample_id}"
    )


if __name__ == "__main__":
    main()
