"""What probes and experiments return: frozen records, one file per topic. Rules read these and nothing else."""

from headrace.doctor.evidence.base import (
    CollateTrial,
    ContractCheck,
    DecodedImage,
    Evidence,
    LoaderFacts,
    OpenedFile,
    Refusal,
    SampleRead,
    SampleReads,
    Violation,
    WorkerStreams,
)

__all__ = [
    "CollateTrial",
    "ContractCheck",
    "DecodedImage",
    "Evidence",
    "LoaderFacts",
    "OpenedFile",
    "Refusal",
    "SampleRead",
    "SampleReads",
    "Violation",
    "WorkerStreams",
]
