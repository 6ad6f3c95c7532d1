"""The harness measures in turn, leaves warm-up out, compares the right way round, and stores what it shows."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from bench import harness
from bench.__main__ import bench_names
from bench.harness import (
    Case,
    Figure,
    Options,
    Report,
    Versus,
    compare,
    interval,
    joined,
    read_report,
    write_report,
)
from bench.manifest import _type_among, file_system_type


class Stage:
    """A clock that only cases move, and the order in which they ran."""

    def __init__(self) -> None:
        self.now = 0
        self.ran: list[str] = []

    def clock(self) -> int:
        return self.now

    def case(self, name: str, milliseconds: list[int], operations: int = 1) -> Case:
        left = iter(milliseconds)

        def run() -> None:
            self.ran.append(name)
            assert not gc.isenabled()
            self.now += next(left) * 1_000_000

        return Case(name, run, operations, before=self.idle, after=self.idle)

    def idle(self) -> None:
        self.now += 7_000_000_000


def made(tmp_path: Path, versus: list[Versus] | None = None, figures: tuple[Figure, ...] = ()) -> tuple[Report, Stage]:
    stage = Stage()
    cases = [stage.case("floor", [99, 10, 20, 30]), stage.case("ours", [999, 80, 40, 60], operations=2)]
    options = Options(rounds=3, seed=5, data=tmp_path)
    return compare("sample", cases, options, versus, figures=figures, warmup=1, clock=stage.clock), stage


def test_cases_take_turns_and_neither_warm_up_nor_preparation_counts(tmp_path: Path) -> None:
    report, stage = made(tmp_path)
    assert stage.ran == ["floor", "ours"] * 4
    assert [case.samples for case in report.measured] == [[0.01, 0.02, 0.03], [0.04, 0.02, 0.03]]
    assert gc.isenabled()


def test_a_ratio_is_of_medians_for_one_operation(tmp_path: Path) -> None:
    (compared,) = made(tmp_path)[0].compared
    assert (compared.ours, compared.floor, compared.met) == ("ours", "floor", None)
    assert compared.ratio == pytest.approx(1.5)
    assert 0.02 / 0.03 <= compared.low <= 1.5 <= compared.high <= 4


@pytest.mark.parametrize(
    ("versus", "ratio", "met"),
    [
        (Versus("ours", "floor", at_most=1.6), 1.5, True),
        (Versus("ours", "floor", at_most=1.4), 1.5, False),
        (Versus("ours", "floor", at_least=0.6), 1 / 1.5, True),
        (Versus("ours", "floor", at_least=0.7), 1 / 1.5, False),
    ],
)
def test_a_bound_of_times_and_one_of_rates_point_opposite_ways(
    tmp_path: Path, versus: Versus, ratio: float, *, met: bool
) -> None:
    report, _ = made(tmp_path, [versus])
    (compared,) = report.compared
    assert compared.ratio == pytest.approx(ratio)
    assert compared.met is met
    assert ("missed" in report.table()) is not met


@pytest.mark.parametrize(
    "versus",
    [Versus("ours", "ceiling"), Versus("theirs", "floor"), Versus("ours", "floor", at_most=1, at_least=1)],
)
def test_a_comparison_that_means_nothing_is_refused(tmp_path: Path, versus: Versus) -> None:
    with pytest.raises(ValueError, match="Versus"):
        made(tmp_path, [versus])


def test_two_cases_of_one_name_are_refused(tmp_path: Path) -> None:
    case = Case("same", list)
    with pytest.raises(ValueError, match="one name"):
        compare("sample", [case, case], Options(data=tmp_path))


def test_reports_of_one_bench_are_joined_in_order_unless_their_cases_share_a_name(tmp_path: Path) -> None:
    one, _ = made(tmp_path, figures=(Figure(name="bytes", value=1, unit="B"),))
    other = compare("sample", [Case("a", list), Case("b", list)], Options(data=tmp_path), [], cpu=True)
    both = joined([one, other], note="together")
    assert [case.name for case in both.measured] == [*(case.name for case in one.measured), "a", "b"]
    assert (both.compared, both.figures, both.note, both.clock) == (
        one.compared,
        one.figures,
        "together",
        "wall or CPU",
    )
    with pytest.raises(ValueError, match="one name"):
        joined([one, one], note="")


def test_a_round_without_time_is_an_error_not_a_ratio(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="took no time"):
        compare("sample", [Case("a", list), Case("b", list)], Options(data=tmp_path), clock=lambda: 0)


def test_an_interval_narrows_with_agreement_and_repeats_with_its_seed() -> None:
    assert interval([2.0] * 5, [1.0] * 5, seed=1) == (2.0, 2.0)
    low, high = interval([1.0, 2.0, 3.0, 4.0], [1.0, 1.1, 1.2, 1.3], seed=1)
    assert low < high
    assert (low, high) == interval([1.0, 2.0, 3.0, 4.0], [1.0, 1.1, 1.2, 1.3], seed=1)


def test_a_report_is_stored_and_read_back(tmp_path: Path) -> None:
    figure = Figure(name="bytes an event", value=420, unit="B", at_most=544)
    report, _ = made(tmp_path, [Versus("ours", "floor", at_most=2)], (figure,))
    again = read_report(write_report(report, tmp_path))
    assert again == report
    assert again.table() == report.table()
    assert "| bytes an event | 420 B | ≤ 544 B |" in report.table()
    assert report.command in report.table()


def test_the_manifest_says_what_a_figure_depends_on(tmp_path: Path) -> None:
    manifest = made(tmp_path)[0].manifest
    assert manifest.seed == 5
    assert {"lmdb", "msgspec", "pykka"} <= set(manifest.libraries)
    assert str(tmp_path) not in manifest.line()


def test_the_file_system_is_that_of_the_nearest_mount() -> None:
    mounts = "a / ext4 rw 0 0\nb /tmp tmpfs rw 0 0\nc /tmp/my\\040disk xfs rw 0 0\nd /tmp overlay rw 0 0\n"
    assert _type_among(mounts, Path("/home/x")) == "ext4"
    assert _type_among(mounts, Path("/tmp/my disk/x")) == "xfs"
    assert _type_among(mounts, Path("/tmp/other")) == "overlay"
    assert _type_among("", Path("/home")) == "unknown"
    assert file_system_type(Path("/")) != ""


def test_the_command_line_prints_and_stores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "OUT", tmp_path / "out")
    seen: list[Options] = []

    def measure(options: Options) -> Report:
        seen.append(options)
        assert list(options.data.iterdir()) == []
        return made(tmp_path)[0]

    harness.main(measure, argv=["--rounds", "4", "--seed", "9", "--out", str(tmp_path / "kept")])
    assert (seen[0].rounds, seen[0].seed, seen[0].data.exists()) == (4, 9, False)
    assert read_report(tmp_path / "kept" / "sample.json").name == "sample"
    assert "| ours |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv", [["--quick", "--publish"], ["--quick", "--full"], ["--rounds", "0"], ["--publish", "--out", "x"]]
)
def test_a_command_line_that_contradicts_itself_is_refused(argv: list[str]) -> None:
    with pytest.raises(SystemExit):
        harness.main(lambda _: pytest.fail("it ran"), argv=argv)


def test_the_largest_sizes_are_asked_for_and_named_in_the_command(tmp_path: Path) -> None:
    def measure(options: Options) -> Report:
        cases = [Case("a", lambda: sum(range(1000))), Case("b", lambda: sum(range(1000)))]
        return compare("sample", cases, options, [], warmup=0)

    for argv, named in ((["--full"], True), ([], False)):
        harness.main(measure, argv=["--rounds", "1", "--out", str(tmp_path), *argv])
        assert ("--full" in read_report(tmp_path / "sample.json").command) is named


def test_tools_are_not_taken_for_benches(tmp_path: Path) -> None:
    for name in ("floors", "harness", "manifest", "tables", "__init__", "__main__", "_shared", "append", "actors"):
        (tmp_path / f"{name}.py").touch()
    assert bench_names(tmp_path) == ["actors", "append"]
