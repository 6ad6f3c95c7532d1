"""Scenarios of whole programs, each at two sizes: a small one in `make test`, the full one in `make soak`."""
