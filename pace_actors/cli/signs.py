"""Characters that a stream cannot show: readable stand-ins for ours, escapes for those of a text.

Everything that is printed goes through here: as an error handler of the streams, and before it is laid out, through
`shown_by`, wherever a stand-in may be longer than what it stands for.
"""

from __future__ import annotations

import codecs
import re
import sys
from typing import Any, Final, TextIO

import msgspec

STAND_INS: Final = {
    "…": "...", "“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "·": ";", "●": "*", "→": ">", "≤": "<=",
    "│": "|", "┊": ":", "┬": "+", "└": "+", "─": "-", "▌": "|", "█": "#", "▒": "=", "░": ".", "✓": "v", "✗": "x",
    "╳": "X", "\u00a0": " ", "\ufffd": "?", **{chr(0x2400 + code): f"\\x{code:02x}" for code in range(32)},
    "\u2421": "\\x7f",
}  # fmt: skip
HANDLER: Final = "pace-signs"
PLAIN: Final = "pace_ascii"
"""ASCII by a name of ours: click takes a stream that calls itself ASCII for a mistake, and writes UTF-8 into it."""


def stand_in(error: UnicodeError) -> tuple[str, int]:
    """What is written instead, and where the text goes on: an error handler of `codecs`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(STAND_INS.get(sign) or _escaped(sign) for sign in signs), error.end


def shown_by(text: str, stream: TextIO) -> str:
    """A text in characters that a stream can show."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, HANDLER).decode(encoding)


def json_for(stream: TextIO, value: Any) -> str:
    """One JSON document, in ASCII where the stream is not one of UTF-8: escapes of JSON, no stand-ins."""
    text = msgspec.json.encode(value).decode()
    return text if _name(stream) == "utf-8" else re.sub(r"[^\x00-\x7f]", lambda found: _units(found[0]), text)


def use_stand_ins() -> None:
    """Let the standard streams show what they cannot."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=PLAIN if _name(stream) == "ascii" else stream.encoding, errors=HANDLER)


def _escaped(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code <= ord("\uffff") else f"\\U{code:08x}"


def _units(sign: str) -> str:
    """A character as JSON escapes it: by one or two units of UTF-16."""
    raw = sign.encode("utf-16-be")
    return "".join(f"\\u{raw[at]:02x}{raw[at + 1]:02x}" for at in range(0, len(raw), 2))


def _name(stream: TextIO) -> str:
    return codecs.lookup(stream.encoding or "utf-8").name


def _ascii(name: str) -> codecs.CodecInfo | None:
    known = codecs.lookup("ascii")
    if name != PLAIN:
        return None
    return codecs.CodecInfo(
        known.encode, known.decode, known.streamreader, known.streamwriter, known.incrementalencoder,
        known.incrementaldecoder, PLAIN,
    )  # fmt: skip


codecs.register_error(HANDLER, stand_in)
codecs.register(_ascii)
