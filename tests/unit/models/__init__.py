"""Models, without a socket."""
