"""What supervision can do here: the next best way where a kernel is older, and the reason wherever keepers do not work."""

import sys
from pathlib import Path

import anyio
import pytest
from liveness import survivors, unique_duration
from process.shapes import BOUND, GRACE, part, run, run_until

from toolrunner.facts import Containment
from toolrunner.process import EndCause, LaunchPlan, SpawnRefused, Supervisor, link

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("missing", ["lists", "pidfds"])
async def test_older_kernels_get_the_next_best_way(
    keeper: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(
        "toolrunner.process.link.ENTRY", patched_entry(tmp_path, f"kernel.{missing} = False; findings.reasons.append('old')")
    )
    duration = unique_duration()
    outcome = await run_until(
        keeper, f"setsid sleep {duration} & (setsid -f sleep {duration}); echo part; wait", part, grace=GRACE
    )
    assert outcome.end.cause is EndCause.STOPPED
    assert outcome.end.still_running == ()
    assert await survivors(duration) == []
    abilities = await keeper.abilities()
    assert (abilities.containment, "old" in abilities.reasons) == (Containment.KEEPER, True)


def patched_entry(folder: Path, change: str) -> str:
    """An entry of the warden whose self-test finds something else."""
    source = Path(link.ENTRY).read_text()
    start = '    importlib.import_module("toolrunner.process.keeping.warden").main('
    assert start in source
    patch = f"""
    warden = importlib.import_module("toolrunner.process.keeping.warden")
    real = warden.examine
    def examine(kernel):
        findings = real(kernel)
        {change}
        return findings
    warden.examine = examine
"""
    source = source.replace(start, patch + start).replace("os.path.abspath(__file__)", repr(link.ENTRY))
    entry = folder / "entry.py"
    entry.write_text(source)
    return str(entry)


async def test_where_keepers_do_not_work_best_effort_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: object
) -> None:
    entry = patched_entry(tmp_path, "findings.fit = False; findings.reasons.append('no such kernel')")
    monkeypatch.setattr("toolrunner.process.link.ENTRY", entry)
    supervisor = Supervisor()
    try:
        outcome = await run(supervisor, "echo part")
        assert outcome.end.facts.containment is Containment.BEST_EFFORT
        assert any("because no such kernel" in text for text in outcome.end.missing)
        abilities = await supervisor.abilities()
        assert (abilities.containment, abilities.reasons) == (Containment.BEST_EFFORT, ("no such kernel",))
    finally:
        await supervisor.aclose()


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python", "/etc/passwd"])
async def test_an_interpreter_that_is_none_is_named(python: str, anyio_backend: object) -> None:
    asked, any_will_do = Supervisor(python=python, containment=Containment.KEEPER), Supervisor(python=python)
    try:
        with anyio.fail_after(BOUND), pytest.raises(SpawnRefused, match=f"keepers do not work here: .*{python}"):
            await asked.prepare(LaunchPlan(("true",)))
        outcome = await run(any_will_do, "echo part")
        assert outcome.end.facts.containment is Containment.BEST_EFFORT
        assert any(python in text for text in outcome.end.missing)
    finally:
        await asked.aclose()
        await any_will_do.aclose()


async def test_abilities_of_this_host(keeper: Supervisor) -> None:
    abilities = await keeper.abilities()
    assert (abilities.containment, abilities.reasons) == (Containment.KEEPER, ())
    assert abilities.python == getattr(sys, "_base_executable", sys.executable)
    assert abilities.max_processes >= 1
