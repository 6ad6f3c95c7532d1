"""The default backend: one LMDB file, one thread that commits, any number of readers."""

from eventlog.lmdb.log import LmdbLog, open_log

__all__ = ["LmdbLog", "open_log"]
