"""Programs that break a log on purpose, and what they hold it to afterwards. Linux only; docs/eventlog-testing.md.

**Power cuts.** A program is run under strace (`trace`). What it did to its files is played on a model of a disk
(`disk`), which knows what is surely there after each call, and what may be there or not. From that follow the states
that a cut could leave (`states`); each that is different is laid out on a real disk, opened by another process and
compared with what the program had been promised (`reopen`). `harness` puts these together. The program and the
comparison are anybody's: those of the event log itself are `workload` and `promises`; `lies` must be found.

**Errors and kills.** A run of `steps` has each of its calls fail once (`inject`), or is killed (`kill`); `account`
holds the log against what callers were told.
"""
