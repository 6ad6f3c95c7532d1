"""The parts of the race bench: report, plots, the arm on real threads, another library."""
