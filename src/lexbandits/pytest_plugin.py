"""The plug-in of pytest: `@pytest.mark.certify(at_least=0.9)` repeats a test until its rate is shown.

A test without the marker costs a look at its markers; everything else is imported with the first marked one.
"""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lexbandits.testing import RateTest

MARKER = "certify(at_least, slack, delta, budget, undecided): repeat the test until its rate is certified"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a marked test, in place of pytest's own protocol."""
    marker = item.get_closest_marker("certify")
    if marker is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item, nextitem, marker):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _reports(
    item: pytest.Item, nextitem: pytest.Item | None, marker: pytest.Mark
) -> Iterator[pytest.TestReport]:
    """Repeat setup, call and teardown, and make one report of each of all the calls."""
    from lexbandits.testing import RateTest

    try:
        if marker.args:
            raise TypeError("certify takes names alone, such as certify(at_least=0.9)")
        test = RateTest(**marker.kwargs)
    except (TypeError, ValueError) as error:
        yield _report(item, "failed", f"{item.nodeid}: {error}")
        item.session._setupstate.teardown_exact(nextitem)
        return
    first = last_failure = None
    seconds = 0.0
    while test.outcome is None:
        reports = _run(item, nextitem, test)
        by_phase = {report.when: report for report in reports}
        call = by_phase.get("call")
        if call is None or call.skipped or not by_phase["teardown"].passed:  # an error or a skip, not a run
            yield from (report for report in reports if report is not call or call.skipped)
            item.session._setupstate.teardown_exact(nextitem)
            return
        first = first or by_phase["setup"]
        last_failure = call if call.failed else last_failure
        seconds += call.duration
    assert first is not None
    yield first
    yield _verdict(item, test, last_failure, seconds)
    yield by_phase["teardown"]


def _run(item: pytest.Item, nextitem: pytest.Item | None, test: "RateTest") -> list[pytest.TestReport]:
    """Set up, call and tear down once, and count the run.

    Until the test ends its parent is the next node, so that what belongs to the function is torn down and
    fixtures of a class, a module or the session stay.
    """
    from _pytest.runner import call_and_report

    item._report_sections.clear()
    if not getattr(item, "_request", True):
        item._initrequest()  # type: ignore[attr-defined]
    reports = [call_and_report(item, "setup", log=False)]
    if reports[0].passed and not item.config.getoption("setuponly", False):
        with warnings.catch_warnings():  # `return x` for `assert x` would pass every time
            warnings.simplefilter("error", pytest.PytestReturnNotNoneWarning)
            reports.append(call_and_report(item, "call", log=False))
        if not reports[1].skipped:
            test.add(reports[1].passed)
    after = item.parent if test.outcome is None else nextitem
    reports.append(call_and_report(item, "teardown", log=False, nextitem=after))
    if hasattr(item, "_request"):
        item._request = False
        item.funcargs = None  # type: ignore[attr-defined]
    return reports


def _verdict(
    item: pytest.Item, test: "RateTest", failure: pytest.TestReport | None, seconds: float
) -> pytest.TestReport:
    """The report of the calls: passed only where the rate is certified."""
    from lexbandits.testing import IfUndecided, RateOutcome

    if test.outcome is RateOutcome.MET:
        report = _report(item, "passed", None, seconds)
    elif test.outcome is not RateOutcome.VIOLATED and test.undecided == IfUndecided.SKIP:
        path, line, _ = item.location
        report = _report(item, "skipped", (path, line or 0, f"Skipped: {test.message}"), seconds)
    else:
        shown = f"\n\nThe last run that failed:\n{failure.longreprtext}" if failure else ""
        report = _report(item, "failed", f"{test.message}{shown}", seconds)
        report.sections = list(failure.sections) if failure else []
    report.user_properties.append(("certify", test.message))
    return report


def _report(
    item: pytest.Item, outcome: str, longrepr: str | tuple[str, int, str] | None, seconds: float = 0.0
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome=outcome,  # type: ignore[arg-type]
        longrepr=longrepr,
        when="call",
        duration=seconds,
        user_properties=list(item.user_properties),
    )
