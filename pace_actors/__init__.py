"""pace-actors: the memory of an assistant, in one process, on one directory."""
