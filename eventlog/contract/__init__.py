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
from eventlog.contract.erasing import ClosingContract, ErasingContract
from eventlog.contract.exchanging import ExchangingContract
from eventlog.contract.following import FollowingContract
from eventlog.contract.keeping import KeepingContract
from eventlog.contract.machine import LogMachine, MachineContract
from eventlog.contract.many import ManyContract
from eventlog.contract.reading import ReadingContract
from eventlog.contract.support import NewStore, OpenLog


class EventLogContract(
    AppendingContract,
    ManyContract,
    ReadingContract,
    FollowingContract,
    ClosingContract,
    ErasingContract,
    KeepingContract,
    ExchangingContract,
    MachineContract,
):
    """The whole contract, ordered by property, and at the end any sequence of verbs."""


__all__ = ["EventLogContract", "LogMachine", "NewStore", "OpenLog"]
