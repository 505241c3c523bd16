"""How to hold any loader or data set by one handle. Nothing else in the doctor knows foreign libraries."""

from headrace.doctor.subject.groups import split_up
from headrace.doctor.subject.handle import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.walking import Walk

__all__ = ["CannotExamine", "Subject", "Walk", "split_up"]
