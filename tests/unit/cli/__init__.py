"""The command line, as a user meets it: in a process of its own wherever that matters."""
