"""The pure rules: no clock, no randomness, no I/O. Actors, replay, command line and simulation call them."""
