"""The account of `pace_actors.simulation`, under the name by which tests have known it."""

from pace_actors.simulation.invariants import Account, Broken, check_stream, require

__all__ = ["Account", "Broken", "check_stream", "require"]
