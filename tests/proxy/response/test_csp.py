from mitmproxy.http import Headers

from gatewayfilter.proxy.response.csp import allow_style
from tests.case_tables import all_cases

SOURCE = "'sha256-x'"


@all_cases(
    ("policy", "expected"),
    [
        ("script-src 'self'", "script-src 'self'"),
        ("default-src 'self'", f"default-src 'self'; style-src 'self' {SOURCE}"),
        ("default-src 'none'", f"default-src 'none'; style-src {SOURCE}"),
        ("style-src 'self'; img-src *", f"style-src 'self' {SOURCE}; img-src *"),
        ("STYLE-SRC 'self'", f"style-src 'self' {SOURCE}"),
        ("style-src 'unsafe-inline'", "style-src 'unsafe-inline'"),
        ("style-src 'unsafe-inline' 'nonce-a'", f"style-src 'unsafe-inline' 'nonce-a' {SOURCE}"),
        ("style-src 'self'; style-src-elem 'none'", f"style-src 'self'; style-src-elem {SOURCE}"),
        ("style-src 'none'; style-src *", f"style-src {SOURCE}; style-src *"),
        ("default-src 'self'; style-src", f"default-src 'self'; style-src {SOURCE}"),
        ("default-src a, style-src b", f"default-src a; style-src a {SOURCE}, style-src b {SOURCE}"),
        ("", ""),
        (";;", ";;"),
    ],
)
@all_cases("name", ["content-security-policy", "Content-Security-Policy-Report-Only"])
def test_each_policy_lets_the_sheet_in_and_nothing_else(policy: str, expected: str, name: str) -> None:
    headers = Headers([(name.encode(), policy.encode()), (b"x", b"y")])
    allow_style(headers, lambda: SOURCE)
    assert headers[name] == expected
    assert headers["x"] == "y"


def test_every_header_counts() -> None:
    headers = Headers([(b"content-security-policy", b"default-src a"), (b"content-security-policy", b"img-src b")])
    allow_style(headers, lambda: SOURCE)
    assert headers.get_all("content-security-policy") == [f"default-src a; style-src a {SOURCE}", "img-src b"]
