"""No list of any format can name a whole public suffix."""

import hashlib
from io import BytesIO

import pytest

from gatewayfilter.model import ListAction
from gatewayfilter.sources.formats.host_names import all_ordinary
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.formats.parse import count_list
from tests.case_tables import all_cases

SUFFIXES = ("com", "co.uk", "xn--fiqs8s", "中国", "公司.cn", "ck", "foo.ck", "COM", "com.")


def lines_of(suffix: str) -> list[tuple[ListFormat, str]]:
    return [
        (ListFormat.HOSTS, f"0.0.0.0 {suffix}"),
        (ListFormat.DOMAINS, suffix),
        (ListFormat.DOMAINS, f"*.{suffix}"),
        (ListFormat.DOMAINS, f".{suffix}"),
        (ListFormat.DNSMASQ, f"address=/{suffix}/0.0.0.0"),
        (ListFormat.DNSMASQ, f"server=/{suffix}/"),
        (ListFormat.DNSMASQ, f"local=/.{suffix}/"),
        (ListFormat.UT1, suffix),
        (ListFormat.UT1, f"{suffix}/path"),
        (ListFormat.URLS, f"http://{suffix}/page"),
        (ListFormat.RPZ, f"{suffix} CNAME ."),
        (ListFormat.RPZ, f"*.{suffix} CNAME ."),
        (ListFormat.JSON, f'[{{"action": "block", "kind": "domain", "pattern": ".{suffix}"}}]'),
        (ListFormat.CSV, f"action,kind,pattern\nblock,domain,.{suffix}"),
        (ListFormat.ADBLOCK, f"||{suffix.removesuffix('.')}^"),
        (ListFormat.ADBLOCK, f"0.0.0.0 {suffix}"),
        # A wildcard before letters beyond ASCII fits no URL.
        *([(ListFormat.ADBLOCK, f"||*.{suffix.removesuffix('.')}^")] if suffix.isascii() else []),
    ]


@all_cases(("list_format", "text"), [case for suffix in SUFFIXES for case in lines_of(suffix)])
def test_a_whole_suffix_is_rejected(list_format: ListFormat, text: str) -> None:
    report = count_list(BytesIO(text.encode()), list_format)
    assert (report.accepted, report.rejected) == (0, 1), report


@all_cases("name", [".com", ".co.uk", ".xn--fiqs8s", ".ck"])
def test_the_digest_of_a_whole_suffix_is_rejected(name: str) -> None:
    digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    other = hashlib.md5(b".example.com", usedforsecurity=False).hexdigest()
    report = count_list(BytesIO(f"{digest}\n{other}\n".encode()), ListFormat.DIGESTS)
    assert (report.accepted, report.rejected) == (1, 1)
    assert name in report.samples[0][2]


@pytest.mark.parametrize("list_format", [ListFormat.HOSTS, ListFormat.ADBLOCK])
def test_names_of_the_machine_itself_are_comments(list_format: ListFormat) -> None:
    report = count_list(BytesIO(b"127.0.0.1 localhost\n0.0.0.0 0.0.0.0\n"), list_format, ListAction.BLOCK)
    assert (report.accepted, report.comments) == (0, 2)


@all_cases(
    ("hosts", "ordinary"),
    [
        ([], True),
        (["a.example.com", "b.example.co.uk"], True),
        (["a.example.com", "co.uk"], False),
        (["foo.ck"], False),
        (["a.foo.ck"], True),
        (["localhost.localdomain"], False),
        ([".".join(["a" * 49] * 5) + ".com"], True),  # 253 characters
        ([".".join(["a" * 49] * 5) + ".info"], False),
    ],
)
def test_which_names_need_no_further_check(hosts: list[str], *, ordinary: bool) -> None:
    assert all_ordinary(hosts) is ordinary
