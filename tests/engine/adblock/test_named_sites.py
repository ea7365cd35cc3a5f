"""The sites that rules name by their texts: `gatewayfilter.engine.adblock.named_sites`."""

from gatewayfilter.engine.adblock.named_sites import hosts_in_pattern, hosts_in_text, sites_of
from gatewayfilter.engine.adblock.syntax.parser import parse_line


def test_hosts_that_a_pattern_requires() -> None:
    for pattern, hosts in (
        ("||a.example^", ["a.example"]), ("||example^", []), ("||Sub.A.example/x", ["sub.a.example"]), ("||co.uk^", []),
        ("|https://a.example/", ["a.example"]), ("//a.example/x", ["a.example"]), ("*://a.b.example/", ["a.b.example"]),
        (":://a", []), ("https://*.b.example/x", ["b.example"]), ("|http://a.b.example/", ["a.b.example"]),
        # what may begin within a label loses it
        ("a.b.example/", ["b.example"]), ("|a.b.example/", ["b.example"]), ("*a.b.example/", ["b.example"]),
        ("||*a.b.example^", ["b.example"]), ("a.example/", ["a.example"]), ("x*.y.example/", ["y.example"]),
        ("||www.goo*le.example/", ["le.example"]), ("*.b.example/", ["b.example"]), (".b.example/", ["b.example"]),
        ("||.b.example/", ["b.example"]), (".example/", []),
        # entities, and open ends that may go on to be others
        ("||google.*", ["google.*"]), ("google.*/x", ["google.*"]), ("x.google.*/x", ["x.google.*"]), ("||a*b.*", ["b.*"]),
        ("||a.b.*", ["a.b.*"]), ("||*.x.*", ["x.*"]), ("||name", ["name.*"]), ("https://name", ["name.*"]), ("||.name", []),
        ("||a.b.example", ["a.b.example", "a.b.example.*"]), ("|a.b.example", ["b.example"]), ("||name.", []), ("||a.b.", []),
        ("||name.b", ["name.b", "name.b.*"]), ("||name-", []),
        ("https://a.example", ["a.example", "a.example.*"]),
        ("||[2001:db8::1]/", ["[2001:db8::1]"]), ("||[abc]", []), ("||127.0.0.1^", ["127.0.0.1"]),
        ("|name", []), ("name", []), ("/ads/*", []), ("*", []), ("", []),
    ):  # fmt: skip
        assert list(hosts_in_pattern(pattern)) == hosts, pattern


def test_a_host_at_the_beginning_of_a_text_is_followed_by_a_slash() -> None:
    for text, hosts in (
        ("https://a.example/", ["a.example"]), ("https://a.example", []), ("a.example/x", ["a.example"]), ("/a.example/", []),
        ("a.example", []),
    ):  # fmt: skip
        assert list(hosts_in_text(text)) == hosts, text


def test_the_sites_of_rules() -> None:
    for line, sites in (
        ("||a.example^$script,domain=b.example", {"a.example"}), ("||a.example/x", {"a.example"}), ("@@||a.example/x", set()),
        ("||a.example/x$badfilter", set()), ("||a.example/x$removeparam=y", set()), ("||a.example^", set()),
        ("||a.example^$script", set()), ("||a.example^$font", {"a.example"}), ("||a.example^$first-party", {"a.example"}),
        ("/ads/*$domain=b.example|c.example", {"b.example", "c.example"}), ("/ads/*$domain=b.example,third-party", set()),
        ("/ads/*$domain=b.example,strict3p", set()), ("/ads/*$domain=b.example,first-party", {"b.example"}),
        ("/ads/*$to=d.example,domain=b.example", {"d.example"}), ("/ads/*", set()),
        ("||a.example/x$domain=b.example", {"a.example"}), (r"/^https:\/\/a\.example\/x/", {"a.example"}),
        (r"/a\.example/", set()),
    ):  # fmt: skip
        found = [sites_of(rule) for rule in parse_line(line).rules]
        assert frozenset().union(*found) == sites, line
