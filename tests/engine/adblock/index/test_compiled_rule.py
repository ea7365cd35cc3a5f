"""A rule's test taken apart: what the hosts decide, and what remains for the URL, the method and the client."""

from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule, RuleTest
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases


def compiled(line: str) -> CompiledRule:
    [rule] = parse_line(line).rules
    return CompiledRule(rule)


URLS = ["https://a.test/ad", "https://a.test/AD", "https://www.a.test/x", "https://b.test/ad"]


def kind_of(left: RuleTest | bool | None) -> str:  # noqa: FBT001  what the tests below ask for
    """Returns `always`, `never`, `hosts`, or the numbers of the URLs on which what remains holds."""
    if left is None or isinstance(left, bool):
        return {None: "hosts", True: "always", False: "never"}[left]
    requests = [Request(parse_url(url), None, ResourceType.SCRIPT) for url in URLS]
    return "".join(str(number) for number, asked in enumerate(requests, 1) if left(asked, asked.url.text.lower(), ""))


@all_cases(
    ("line", "host", "source", "expected"),
    [
        ("||a.test^", "a.test", "", "always"),
        ("||a.test^", "www.a.test", "b.test", "always"),
        ("||a.test^", "ba.test", "", "never"),
        ("||a.test^", "a.test.b", "", "never"),
        ("||a.test^", "test", "", "never"),
        ("||a.test/ad", "a.test", "", "124"),
        ("||a.test/ad", "b.test", "", "never"),
        ("||a.test/AD$match-case", "a.test", "", "2"),
        ("||a.test^$match-case", "a.test", "", "123"),
        ("||a.", "a.test", "", "123"),
        ("||a.", "b.test", "", "never"),
        ("/ad", "c.test", "", "124"),
        ("/ad$domain=p.test", "c.test", "p.test", "124"),
        ("/ad$domain=p.test", "c.test", "www.p.test", "124"),
        ("/ad$domain=p.test", "c.test", "q.test", "never"),
        ("/ad$domain=p.test", "c.test", "", "never"),
        ("/ad$domain=/^p/", "c.test", "p.test", "124"),
        ("/ad$domain=/^p/", "c.test", "", "never"),
        ("/ad$domain=~p.test", "c.test", "p.test", "never"),
        ("/ad$domain=~p.test", "c.test", "", "124"),
        ("/ad$to=a.test", "www.a.test", "", "124"),
        ("/ad$to=a.test", "b.test", "", "never"),
        ("/ad$to=~a.test", "a.test", "", "never"),
        ("/ad$strict1p", "a.test", "a.test", "124"),
        ("/ad$strict1p", "a.test", "b.test", "never"),
        ("/ad$strict3p", "a.test", "a.test", "never"),
        ("/ad$strict3p", "a.test", "b.test", "124"),
        ("/ad$method=get", "a.test", "", "124"),
        ("/ad$method=post", "a.test", "", ""),
        ("||a.test^$method=post", "a.test", "", ""),
        ("/ad$method=~get", "a.test", "", ""),
        ("||a.test^$client=192.0.2.1", "a.test", "", ""),
        ("||a.test^$client=~192.0.2.1", "a.test", "", "1234"),
    ],
)
def test_what_remains_between_two_hosts(line: str, host: str, source: str, expected: str) -> None:
    assert kind_of(compiled(line).between(host, source)) == expected


@all_cases(
    ("line", "by_host", "by_page", "expected"),
    [
        ("||a.test^", True, False, "always"),
        ("||a.test^", False, False, "hosts"),
        ("||a.test/ad", True, False, "124"),
        ("||a.test/ad", False, False, "hosts"),
        ("||a.", True, False, "hosts"),
        ("/ad", False, False, "124"),
        ("/ad", True, True, "124"),
        ("/ad$method=post", False, False, ""),
        ("/ad$domain=p.test", False, True, "124"),
        ("/ad$domain=p.test", False, False, "hosts"),
        ("/ad$domain=p.test", True, False, "hosts"),
        ("/ad$domain=p.test|~q.p.test", False, True, "hosts"),
        ("/ad$to=a.test", True, False, "124"),
        ("/ad$to=a.test", False, True, "hosts"),
        ("/ad$to=a.test,domain=p.test", True, True, "124"),
        ("/ad$to=a.test|~b.a.test", True, False, "hosts"),
        ("||a.test^$to=b.a.test", True, False, "hosts"),
        ("||a.test^$domain=p.test", True, True, "always"),
        ("||a.test^$domain=p.test", False, True, "hosts"),
        ("/ad$strict1p", True, True, "hosts"),
    ],
)
def test_what_remains_where_the_index_has_settled_the_hosts(line: str, *, by_host: bool, by_page: bool, expected: str) -> None:
    assert kind_of(compiled(line).left_at(by_host=by_host, by_page=by_page)) == expected


@all_cases(
    ("line", "expected"),
    [
        ("/ad", True),
        ("/ad$method=get", True),
        ("/ad$client=192.0.2.1", True),
        ("||a.test^", False),
        ("||a.", False),
        ("/ad$domain=p.test", False),
        ("/ad$domain=~p.test", False),
        ("/ad$to=a.test", False),
        ("/ad$strict3p", False),
    ],
)
def test_a_rule_without_hosts_is_unbound(line: str, *, expected: bool) -> None:
    assert compiled(line).is_unbound is expected


@all_cases(
    ("line", "expected"),
    [
        ("/ad$domain=p.test|q.*|~r.p.test", {"p.test", "q.*"}),
        ("/ad$domain=p.test|/^q/", set()),
        ("/ad$domain=~p.test", set()),
        ("/ad", set()),
    ],
)
def test_the_pages_of_a_rule(line: str, expected: set[str]) -> None:
    assert compiled(line).pages == expected


@all_cases(
    ("line", "expected"),
    [
        ("||a.test^", ("a.test", ".a.test", 0, None, None, None, None)),
        ("||a.", ("a.", "", 0, None, None, None, None)),
        (
            "/ad$strict3p,domain=p.test|~q.p.test,to=a.test|~b.a.test",
            ("", "", 3, {"p.test"}, {"q.p.test"}, {"a.test"}, {"b.a.test"}),
        ),
        ("/ad$domain=/^p/", None),
        ("/ad$domain=~/^p/", None),
        ("/ad$to=/^p/", None),
        ("/ad$denyallow=/^p/", None),
    ],
)
def test_the_bounds_of_a_rule(line: str, expected: tuple[object, ...] | None) -> None:
    rule = compiled(line)
    assert (None if rule.bounds is None else rule.bounds[:-1]) == expected
