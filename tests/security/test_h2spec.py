"""h2spec against the running filter: what a client may do by HTTP/2, and what is answered (RFC 7540, RFC 7541)."""

import asyncio
import os
from pathlib import Path
from typing import Final

import pytest
import trustme

from tests.security.attack_run import product
from tests.security.h2spec_tool import CannotBuildError, SpecReport, built, forwarder, read_report
from tests.security.lenient_origin import LenientOrigin

KNOWN_DEVIATIONS: Final[dict[str, str]] = {}
"""Case → why the filter fails it. One that is not here and fails, or is here and passes, fails the test."""
LEAST_CASES: Final = 146


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return built()
    except CannotBuildError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


async def _run(program: Path, folder: Path, fast_path: str) -> SpecReport:
    authority = trustme.CA()
    with product(folder, authority, proxy__workers="1", learn__enabled="false", proxy__fast_path=fast_path) as gateway:
        host, _, port = gateway.address.rpartition(":")
        async with (
            LenientOrigin(authority).running() as origin,
            forwarder((host, int(port)), f"localhost:{origin.tls}") as entrance,
        ):
            report = folder / "report.xml"
            process = await asyncio.create_subprocess_exec(
                program, "-S", "-t", "-k", "-p", str(entrance), "-P", "/ok/page", "-o", "30", "-j", report,
                stdout=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            await asyncio.wait_for(process.wait(), 240)
            assert gateway.status("proxy-0").get("counters", {}).get("hook_errors", 0) == 0
            assert "Traceback" not in gateway.log.read_text()
            return read_report(report)


@pytest.mark.real
@pytest.mark.timeout(600)  # the first one of a checkout builds the tool
@pytest.mark.parametrize("fast_path", ["true", "false"])
def test_the_filter_speaks_http2_as_h2spec_expects(fast_path: str, program: Path, tmp_path: Path) -> None:
    found = asyncio.run(_run(program, tmp_path, fast_path))
    assert found.failed.keys() == KNOWN_DEVIATIONS.keys(), found.failed
    assert found.skipped == ()
    assert found.passed + len(found.failed) >= LEAST_CASES


def test_a_report_is_read(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase package='http2/4.2' classname='a'/><testcase package='http2/4.2' classname='b'>"
        "<failure>Require: x\n</failure></testcase><testcase package='hpack/2' classname='c'><skipped/></testcase>"
        "</testsuite></testsuites>"
    )
    assert read_report(report) == SpecReport(1, {"http2/4.2: b": "Require: x"}, ("hpack/2: c",))
