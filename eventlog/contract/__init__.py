"""What a backend must do to call itself an `EventLog`, as tests to subclass. Needs pytest and hypothesis.

    from eventlog.contract import EventLogContract, OpenLog

    class TestMyBackend(EventLogContract):
        @pytest.fixture
        def new_store(self, tmp_path):
            def new_store() -> OpenLog: ...
            return new_store

`new_store()` makes an empty store and returns the way to open it; each call of that closes the handle given before and
opens the same store again, as after a restart of the program.
"""

from eventlog.contract.appending import AppendingContract
from eventlog.contract.following import FollowingContract
from eventlog.contract.machine import LogMachine, MachineContract
from eventlog.contract.reading import ReadingContract
from eventlog.contract.support import NewStore, OpenLog


class EventLogContract(AppendingContract, ReadingContract, FollowingContract, MachineContract):
    """The whole contract, ordered by property: appending, reading, following, and any sequence of all of them."""


__all__ = ["EventLogContract", "LogMachine", "NewStore", "OpenLog"]
