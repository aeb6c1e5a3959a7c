"""Checks of a result as JUnit XML, which pipelines show as tests."""

from xml.etree import ElementTree as ET

from darkmetrics._text import visible
from darkmetrics.cli.rendering import Check, Result

_SUITE = "darkmetrics"


def as_junit(result: Result) -> str:
    """Return one test case per check: a missed target has failed, one that cannot be judged is skipped."""
    counts = {
        "tests": len(result.checks),
        "failures": sum(check.passed is False for check in result.checks),
        "errors": 0,
        "skipped": sum(check.passed is None for check in result.checks),
    }
    suites = ET.Element("testsuites", name=_SUITE)
    suite = ET.SubElement(suites, "testsuite", {"name": _SUITE, **{name: str(n) for name, n in counts.items()}})
    for check in result.checks:
        _case(suite, check)
    words = [*result.above, *result.warnings, *result.below, *result.verdicts]
    ET.SubElement(suite, "system-out").text = "\n".join(map(_plain, words))
    ET.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _case(suite: ET.Element, check: Check) -> None:
    place = f"{_SUITE}.{_plain(check.group)}" if check.group else _SUITE
    case = ET.SubElement(suite, "testcase", classname=place, name=_plain(check.name), time="0")
    if check.passed is False:
        ET.SubElement(case, "failure", type="target", message=_plain(check.words)).text = _plain(check.line)
    elif check.passed is None:
        ET.SubElement(case, "skipped", message=_plain(check.words))


def _plain(text: str) -> str:
    """Return text without characters that XML does not have."""
    return visible(text, most=5000)
