"""Every error of the event log: one base class, a stable code, fields as well as words, and what to do."""

from __future__ import annotations

from typing import Any, ClassVar


class EventLogError(Exception):
    """Base of all errors of this package. `code` is stable; `fields` hold the particulars."""

    code: ClassVar[str] = "eventlog_error"
    retryable: ClassVar[bool] = False
    template: ClassVar[str] = "the event log failed"
    advice: ClassVar[str] = ""

    def __init__(self, message: str = "", **fields: Any) -> None:
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)
        text = message or self.template
        if fields and not message:
            text += " (" + ", ".join(f"{name}={value!r}" for name, value in fields.items()) + ")"
        super().__init__(f"{text}. {self.advice}" if self.advice else text)


class InvalidArgument(EventLogError):
    """A name, key, event or option outside its stated limits. Nothing was written."""

    code = "invalid_argument"


class WrongExpectedVersion(EventLogError):
    """Somebody else appended to the stream first. Fields: stream, expected, actual."""

    code = "wrong_expected_version"
    template = "the stream is not at the expected version"
    advice = "Read the stream again, decide again, append again"


class KeyReused(EventLogError):
    """The idempotency key is known with another digest. Fields: stream, first_position."""

    code = "key_reused"
    template = "this key was used before for other content"
    advice = "Use a new key for new content"


class KeyErased(EventLogError):
    """What was appended under the key was erased; it is not appended again. Fields: stream, first_position."""

    code = "key_erased"
    template = "what was appended under this key was erased"
    advice = "Leave it: a key of something erased stays taken"


class StreamClosed(EventLogError):
    """The stream was closed for good. Nothing was written. Fields: stream, version."""

    code = "stream_closed"
    template = "this stream is closed and takes no more events"
    advice = "Append to a new stream"


class ChainBroken(EventLogError):
    """An append that this one was decided on failed; `__cause__` is its error. Nothing was written. Field: stream."""

    code = "chain_broken"
    template = "an append that this one builds on was not written"
    advice = "Read the stream again, decide again, append again"


class TooLarge(InvalidArgument):
    """An event or batch above its limit. Fields: bytes, limit. Nothing was written."""

    code = "too_large"
    template = "more bytes than the limit"


class BadExport(InvalidArgument):
    """Lines that `import_lines` cannot take. Fields: line (from 1), reason. What came before that line is imported."""

    code = "bad_export"
    template = "this is not an export that can be imported"
    advice = "What came before this line is imported; importing it again, mended, goes on there"


class CutOffExport(BadExport):
    """An export that ends before its last line. Fields: line, reason. What there was of it is imported."""

    code = "cut_off_export"
    template = "the export is cut off"
    advice = "What there was of it is imported; import the whole of it to go on"


class UnknownType(EventLogError):
    """An event type that the registry does not know. Fields: type, and position, stream, version when read."""

    code = "unknown_type"
    template = "this event type is not registered"
    advice = "Open the log with the registry of the program that wrote it, or read with on_bad='raw'"


class NoUpcaster(EventLogError):
    """A type version that the registry cannot bring up to date. Fields: type, type_version, known, position, stream."""

    code = "no_upcaster"
    template = "this event was written by a newer version of its type"
    advice = "Upgrade the program that reads"


class BadRecord(EventLogError):
    """A stored record that is damaged. Fields: position, stream, version, type, reason (those that are known)."""

    code = "bad_record"
    template = "a stored record is damaged"
    advice = "Read with on_bad='skip' to go on behind it; keep the file as evidence and restore a backup"


class DiskFull(EventLogError):
    """No space left on the device. The whole batch is absent; retry when there is space."""

    code = "disk_full"
    retryable = True
    template = "no space is left on the device; nothing of this batch was written"
    advice = "Free some space and try again"


class MapFull(EventLogError):
    """The log has reached its map size. The whole batch is absent. Fields: map_bytes."""

    code = "map_full"
    retryable = True
    template = "the log has reached its largest size; nothing of this batch was written"
    advice = "Open the log with a larger map_size_max"


class CommitFailed(EventLogError):
    """The write failed for another reason; the batch was looked for after reopening and is absent. Field: reason."""

    code = "commit_failed"
    retryable = True
    template = "the write failed; nothing of this batch was written"
    advice = "Look at the disk, then try again"


class OutcomeUnknown(EventLogError):
    """It is not known whether the batch was written. Append again with the same key: it is written once."""

    code = "outcome_unknown"
    retryable = True
    template = "it is not known whether this batch was written"
    advice = "Append again with the same key"


class Overloaded(EventLogError):
    """The queue of the committer stayed full until the deadline. Nothing was written. Field: queued."""

    code = "overloaded"
    retryable = True
    template = "too many appends are waiting"
    advice = "Slow down and try again"


class TooManyReaders(EventLogError):
    """All reader slots of the log are taken by living readers. Field: limit."""

    code = "too_many_readers"
    retryable = True
    template = "too many read transactions are open at once"
    advice = "Read from fewer threads and processes at a time"


class ReadOnlyLog(EventLogError):
    """A verb that writes, on a handle that was opened with readonly=True. Field: path."""

    code = "read_only_log"
    template = "this log was opened for reading only"
    advice = "Open it with readonly=False in the process that writes"


class LogClosed(EventLogError):
    """The log is closed or closing. Nothing was written."""

    code = "log_closed"
    template = "the log is closed"


class CloseTimeout(EventLogError):
    """The queue was not empty when the time was over. Field: undurable. What is missing is not in the log."""

    code = "close_timeout"
    template = "the log closed before all appends were written"


class LogInUse(EventLogError):
    """Another process writes this log. Fields: path, pid, host, since."""

    code = "log_in_use"
    template = "another process has this log open for writing"
    advice = (
        "Stop it; reading beside it works: every `pace` command that only reads, and eventlog.open(path, readonly=True)"
    )


class OpenedInAnotherProcess(EventLogError):
    """A handle that was carried into a forked child. Field: path."""

    code = "opened_in_another_process"
    template = "this log was opened in another process"
    advice = "Open it in the process that uses it"


class OptionsDiffer(EventLogError):
    """The same log is open in this process with other options. Fields: path, option."""

    code = "options_differ"
    template = "this log is open already, with other options"


class NotALog(EventLogError):
    """The path holds no event log, or one of another kind. Fields: path, reason."""

    code = "not_a_log"
    template = "this is not an event log that can be opened"


class PermissionDenied(NotALog):
    """The system does not let this user at a file or directory of the log. Fields: path, reason."""

    code = "permission_denied"
    template = "the log cannot be opened by this user"
    advice = "Change the owner or the mode of that path, or open a copy; reading needs no right to write"


class NewerFormat(NotALog):
    """The log was written by a newer format. Fields: path, format, known."""

    code = "newer_format"
    template = "this log was written in a newer format"
    advice = "Upgrade the program that reads it"


class DamagedLog(NotALog):
    """The file is shorter than its own account of itself, or its header is damaged. It is left as it is."""

    code = "damaged_log"
    template = "the log's file is damaged and was left untouched"
    advice = "Keep it as evidence and restore a backup"


class NetworkFileSystem(NotALog):
    """The directory is on a network file system, where locks and flushes cannot be relied on. Fields: path, kind."""

    code = "network_file_system"
    template = "a log cannot live on a network file system"
    advice = "Put it on a local disk"


class CompactTimeout(EventLogError):
    """The time was over before the log was compacted. It goes on as it was. Field: timeout_s."""

    code = "compact_timeout"
    retryable = True
    template = "the log was not compacted in time, and goes on as it was"
    advice = "Give it more time; about a minute for each ten gigabytes"


class CheckpointConflict(EventLogError):
    """Another follower of the same name moved the checkpoint. Fields: name, expected, actual."""

    code = "checkpoint_conflict"
    template = "the checkpoint was moved by somebody else"
    advice = "Run one follower of a name at a time"


class CheckpointBeyondHead(EventLogError):
    """A checkpoint that lies behind the log's end: it belongs to another log. Fields: name, checkpoint, head."""

    code = "checkpoint_beyond_head"
    template = "the checkpoint lies beyond the end of the log"
    advice = "Delete what the follower derived and start it under a new name"
