"""Every error that a user of pace-actors can meet, and the exit code of each on the command line.

Errors of the log below (`eventlog.errors`) that a caller can act on come through as they are; `exit_code` knows both.
"""

from __future__ import annotations

from typing import Any, ClassVar

from eventlog import errors as eventlog_errors
from eventlog.errors import EventLogError


class PaceError(Exception):
    """Base of all errors of this package. `code` is stable; `fields` hold the particulars."""

    code: ClassVar[str] = "pace_error"
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **fields: Any) -> None:
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)
        super().__init__(message)


class InvalidInput(PaceError):
    """An argument outside its stated limits. Nothing was written. Fields: what, and the limit where there is one."""

    code = "invalid_input"
    exit_code = 2


class InvalidSetting(InvalidInput):
    """A setting out of its range, given in code. Fields: name, value, allowed."""

    code = "invalid_setting"


class TurnTooLarge(InvalidInput):
    """A turn above `max_turn_bytes`. Nothing was written. Fields: bytes, limit."""

    code = "turn_too_large"


class TurnConflict(PaceError):
    """This turn id was recorded before with other content. Fields: turn_id, turn."""

    code = "turn_conflict"
    exit_code = 4


class Erased(PaceError):
    """This turn id belongs to something that was erased; it is not recorded again. Fields: turn_id."""

    code = "erased"
    exit_code = 4


class ResumeFixed(PaceError):
    """`resume` is fixed with the first turn of a thread. Fields: stored, asked."""

    code = "resume_fixed"
    exit_code = 4


class UnknownFact(PaceError):
    """No fact of that id holds for the user. Fields: fact."""

    code = "unknown_fact"
    exit_code = 3


class SourceOff(PaceError):
    """That type of source is switched off for the user: nothing was kept. Fields: source."""

    code = "source_off"
    exit_code = 4


class RecallOff(PaceError):
    """This directory was opened with `recall=False`."""

    code = "recall_off"
    exit_code = 2


class StatementConflict(PaceError):
    """An id of a statement or note that was used before comes with other content. Fields: statement_id."""

    code = "statement_conflict"
    exit_code = 4


class AppendFailed(PaceError):
    """The turn was not stored; the cause is `__cause__`. Retry with the same turn id. Fields: turn_id, cause."""

    code = "append_failed"
    exit_code = 5
    retryable = True


class OutcomeUnknown(PaceError):
    """The deadline passed before the outcome was known. Retry with the same turn id: stored once. Field: turn_id."""

    code = "outcome_unknown"
    exit_code = 5
    retryable = True


class DeadlineExceeded(PaceError):
    """A question was not answered in time; nothing was written by it. Fields: what, deadline_s."""

    code = "deadline_exceeded"
    exit_code = 5
    retryable = True


class PaceClosed(PaceError):
    """This Pace is closed. Nothing was written."""

    code = "closed"
    exit_code = 5


class MailboxFull(PaceError):
    """Too many messages wait for this thread. Nothing was written; slow down and try again. Fields: actor."""

    code = "mailbox_full"
    exit_code = 5
    retryable = True


class ActorUnavailable(PaceError):
    """What was asked failed repeatedly and waits before it is built anew. Nothing was written.

    Fields: actor, failures, error (type of the last failure), retry_in_s (0: with the next request or soon).
    """

    code = "actor_unavailable"
    exit_code = 5
    retryable = True


class CloseTimeout(PaceError):
    """Not everything could be ended in time. Fields: culprits (what was still running), undurable."""

    code = "close_timeout"
    exit_code = 5


class OptionsDiffer(PaceError):
    """The directory is open in this process with other options. Use that Pace, or give the same. Field: option."""

    code = "options_differ"
    exit_code = 2


class ModelNotAllowed(PaceError):
    """The model's address is not on this machine and `allow_remote_model` is not set. Fields: url."""

    code = "model_not_allowed"
    exit_code = 2


class ImportFailed(PaceError):
    """A line of an import file that cannot be read. Lines before it are stored. Fields: file, line, reason."""

    code = "import_failed"
    exit_code = 3


class Unfoldable(PaceError):
    """Today's rules cannot apply what a log says was decided: other rules decided it. Fields: stream, position, error.

    `replay --check` shows the decision beside today's; what lies before that position can be looked at.
    """

    code = "unfoldable"
    exit_code = 1


EXIT_CODES: dict[type[BaseException], int] = {
    eventlog_errors.LogInUse: 6,
    eventlog_errors.PermissionDenied: 2,
    eventlog_errors.NotALog: 7,
    eventlog_errors.BadRecord: 7,
    eventlog_errors.BadExport: 7,
    eventlog_errors.UnknownType: 7,
    eventlog_errors.NoUpcaster: 7,
    eventlog_errors.InvalidArgument: 2,
    eventlog_errors.OptionsDiffer: 2,
    EventLogError: 5,
}
"""Exit codes of the errors that come from elsewhere; the first matching class counts."""


def exit_code(error: BaseException) -> int:
    """The exit code of the command line for an error."""
    if isinstance(error, PaceError):
        return error.exit_code
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
