"""The simulated world of `pace_actors.simulation`, under the name by which tests have known it."""

from pace_actors.simulation.ports import NEVER_S, WorldModel, held, slowly
from pace_actors.simulation.world import LOG_ID, THREAD, USER, World

__all__ = ["LOG_ID", "NEVER_S", "THREAD", "USER", "World", "WorldModel", "held", "slowly"]
