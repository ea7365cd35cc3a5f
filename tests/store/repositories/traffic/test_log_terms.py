"""The search index's expression of a query."""

import pytest

from gatewayfilter.model import LogQuery
from gatewayfilter.store.repositories.traffic import log_terms
from gatewayfilter.store.repositories.traffic.log_terms import match_of

QUERIES = [
    LogQuery(host="a.test"),
    LogQuery(action="block"),
    LogQuery(reason="block"),
    LogQuery(category="block"),
    LogQuery(source_list="block"),
    LogQuery(clients=frozenset({"block"})),
    LogQuery(text="page"),
    LogQuery(text="abc"),
]


def test_each_condition_is_a_part_of_its_own() -> None:
    found = [match_of(query) for query in QUERIES]
    assert len(set(found)) == len(found)
    assert all(found)
    assert [one.count(" AND ") for one in found] == [0] * 6 + [1, 0]
    every = LogQuery(
        text="abc",
        host="a.test",
        action="block",
        reason="block",
        category="block",
        source_list="block",
        clients=frozenset({"block"}),
    )
    assert set(match_of(every).split(" AND ")) == {*found[:6], found[7]}


@pytest.mark.parametrize("query", [LogQuery(), LogQuery(text="ab"), LogQuery(clients=frozenset())])
def test_a_query_without_a_condition_that_is_indexed_finds_all(query: LogQuery) -> None:
    assert match_of(query) == ""


def test_any_of_several_clients_will_do() -> None:
    found = match_of(LogQuery(clients=frozenset({"192.0.2.1", "user:kim"})))
    assert found.startswith("(")
    assert found.endswith(")")
    assert found.count(" OR ") == 1


def test_the_rarest_parts_of_a_text_are_looked_for() -> None:
    sample = ["http://abcd", "http://abcx", "http://bcdx"]
    assert log_terms._trigrams("abcde", sample) == ["cde", "abc", "bcd"]
    assert log_terms._trigrams("abc", []) == ["abc"]
    most = log_terms._MOST_OF_TEXT
    assert len(log_terms._trigrams("".join(map(chr, range(97, 123))), [])) == most


@pytest.mark.parametrize(
    ("host", "domains"),
    [
        ("", []),
        ("a.b.test", ["a.b.test", "b.test", "test"]),
        ("test", ["test"]),
        ("192.0.2.1", ["192.0.2.1"]),
        ("2001:db8::1", ["2001:db8::1"]),
    ],
)
def test_a_host_is_found_by_the_domains_above_it(host: str, domains: list[str]) -> None:
    assert sorted(log_terms._domains(host)) == sorted(domains)
