"""Benches: each measures ours beside its floor in one run, and prints what it ran on. `python -m bench.NAME`."""
