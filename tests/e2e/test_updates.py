"""A runner updates itself on its machine: a program that fails is left again, a good one stays."""

from pathlib import Path

from exclave import __version__
from tests.e2e.update_site import OLD, build_program, name_program, open_update_site


async def test_a_broken_program_is_left_and_a_good_one_stays_after_the_last_job(
    tmp_path: Path,
) -> None:
    broken = build_program(__version__, is_broken=True)
    good = build_program(__version__)
    old = name_program(build_program(OLD))
    async with open_update_site(tmp_path) as site:
        await site.wait_for_event("enrolled")
        site.offer(broken)
        failed = await site.wait_for_event("update_failed")
        after_failure = site.current
        starts = list(site.starts)

        found = await site.start_job("sleep 6")
        await site.wait_for_event("job_started")
        site.offer(good)
        ended = await site.wait_for_job(found)
        while_working = site.current
        await site.wait_for(name_program(good))
        confirmed = await site.wait_for_event("update_confirmed")
        kept = sorted(folder.name for folder in (site.root / "versions").iterdir())

    assert (failed["program"], after_failure) == (name_program(broken), old)
    assert [code for code in starts if code] == [1, 1, 1]
    assert (ended.state, while_working) == ("succeeded", old)
    assert confirmed == {}
    assert kept == sorted([old, name_program(good)])
