"""What a failed command says: a sentence for a known trouble, the user's own traceback for the user's own code."""

from __future__ import annotations

import traceback

from headrace.errors import HeadraceError, TargetError

__all__ = ["explain_failure"]


def explain_failure(error: Exception) -> str:
    """Returns the text for stderr.

    A `HeadraceError` is written for people and comes without a traceback; a TARGET that could not be loaded comes with
    the traceback of the code that failed in it. Anything else is a fault of headrace, and is shown whole.
    """
    if not isinstance(error, HeadraceError):
        return "".join(traceback.format_exception(error)) + "headrace failed; this is a fault of headrace itself\n"
    text = f"headrace: error: {error}\n"
    if isinstance(error, TargetError) and error.__cause__ is not None:
        text += f"\n{_traceback_of(error.__cause__)}\n"
    return text


def _traceback_of(cause: BaseException) -> str:
    from headrace.doctor.lab.outside import UserTraceback
    from headrace.doctor.stacks import user_traceback

    # What failed in the doctor's child comes as text: the exception itself may not survive the way.
    return str(cause).strip("\n") if isinstance(cause, UserTraceback) else user_traceback(cause)
