"""A log that holds one of everything, and ways to damage it, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import eventlog
from eventlog import AscendingKey, Part, Snapshot, ViewBatch
from tests.unit.eventlog.conftest import ROOT, events

LONG = "long/" + "n" * 900
TIMEOUT_S = 120.0

PRELUDE = """
import json, struct, sys
from pathlib import Path
import lmdb
from eventlog.record import *
from eventlog.record import encode_record, decode_record, pack_position, pack_snapshot, seal, unseal
from eventlog.lmdb.layout import closed_key, pack_checkpoint, pack_stream_number, view_key
from eventlog.types import Snapshot

directory = Path(sys.argv[1])
data = directory / "log-1" / "data.mdb"

def open_file():
    global env, log, streams, names, numbers, types, keys, checkpoints, snapshots, views, about, txn
    env = lmdb.open(str(data.parent), max_dbs=16, lib_version=0, map_size=1 << 28)
    named = lambda name, **flags: env.open_db(name, **flags)
    log, names, numbers, types = named(b"log"), named(b"names"), named(b"numbers"), named(b"types")
    keys, checkpoints, snapshots = named(b"keys"), named(b"checkpoints"), named(b"snapshots")
    views, about = named(b"views"), named(b"about")
    streams = named(b"streams", dupsort=True, dupfixed=True)
    txn = env.begin(write=True)

def flip(db, key, at=-1):
    value = bytearray(txn.get(key, db=db))
    value[at] ^= 16
    txn.put(key, bytes(value), db=db)

def recode(position, **changes):
    key = pack_position(position)
    fields = ("flags", "type", "stream", "version", "at", "place", "count", "type_version", "correlation", "causation",
              "append_key", "digest", "payload")
    r = dict(zip(fields, decode_record(key, txn.get(key, db=log)))) | changes
    value = encode_record(key, r["type"], r["stream"], r["version"], r["at"], r["place"], r["count"],
        r["type_version"], r["correlation"].encode(), r["causation"], r["payload"], r["append_key"], r["digest"],
        r["flags"] & FLAG_ERASED)
    txn.put(key, value, db=log)

def edit(change):
    data.write_bytes(change(data.read_bytes()))

def edit_root(table, field, value):
    def change(text):
        at = text.find(table)
        assert at >= 0
        while at >= 0:
            place = at + len(table) + {"entries": 32, "root": 40}[field]
            if text[at + len(table):at + len(table) + 4] == bytes(4):
                text = text[:place] + struct.pack("=Q", value) + text[place + 8:]
            at = text.find(table, at + 1)
        return text
    edit(change)
"""


def make_full(directory: Path) -> None:
    """One of everything. Streams by number: s, a long name, t, gone, many; types: a, b."""
    with eventlog.open(directory) as log:
        log.append("s", events(b"1", b"2", type_name="a"), key=b"k1", digest=b"d")
        log.append_many([Part("s", events(b"3")), Part(LONG, events(b"4", b"5", type_name="b"))], key=b"k2")
        log.append("t", events(b"6", type_name="a"), correlation="c", causation=5)
        log.append("s", events(b"7", type_name="a"), expect=3, snapshot=Snapshot(4, "v", b"state"))
        log.append("gone", events(b"8", type_name="a"), key=b"k3", digest=b"d")
        log.erase("gone")
        log.close_stream("t")
        for number in range(5):
            log.append("many", events(b"m" * 50, type_name="b"), key=AscendingKey(b"%03d" % number))
        log.set_checkpoint("f", 0, 5, view=ViewBatch({b"a": b"1", b"b": b"2"}))
        log.flush()


def damage(directory: Path, program: str, *, rows: bool = True) -> None:
    """Run a program on the closed log of a directory: on the rows of its file, or on the file itself."""
    text = PRELUDE + ("open_file()\n" + program + "\ntxn.commit()\nenv.close()\n" if rows else program)
    run(text, str(directory))


def run(text: str, *arguments: str) -> str:
    """What a program prints that must end well."""
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
