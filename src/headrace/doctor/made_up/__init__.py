"""Made-up evidence for the examples of rules and the golden reports; one file per topic. Nothing here is measured."""

from headrace.doctor.made_up.samples import (
    collated,
    failed,
    file,
    image,
    label,
    loader,
    ok,
    opened,
    reads,
    values,
)

__all__ = [
    "collated",
    "failed",
    "file",
    "image",
    "label",
    "loader",
    "ok",
    "opened",
    "reads",
    "values",
]
