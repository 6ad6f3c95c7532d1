"""Damages files of the event log, in every byte of a small one, and holds what readers say against the truth.

`make damage` runs it and prints what came of it; `tests/unit/eventlog/test_check.py` runs a part of it.

    pages.py      what each byte of a file is for, worked out from the engine's format and not by the engine
    logs.py       the logs that are damaged, and the records of strangers
    questions.py  what is asked of a log, and the verdict on the answers
    worker.py     a process that damages its own copy, reads, checks and writes, and may die of it
    pool.py       hands variants to workers, and notices when one dies or takes too long
    runs.py       the runs that `make damage` makes, and what they print
"""
