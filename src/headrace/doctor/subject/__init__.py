"""How to hold any loader or data set by one handle. Nothing else in the doctor knows foreign libraries."""

from headrace.doctor.subject.handle import Subject

__all__ = ["Subject"]
