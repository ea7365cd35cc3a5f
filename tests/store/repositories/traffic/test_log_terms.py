"""The search index's expression of a query."""

import pytest

from gatewayfilter.model import LogQuery, LogRecord
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
FIELDS = ("192.0.2.1", "Kim", "a.test", "test", "block", "blacklist")


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


def test_the_terms_of_a_record_are_its_trigrams_its_domains_and_its_fields() -> None:
    record = LogRecord(1.0, "192.0.2.1", "GET", "http://a.test/", "document", "block", "blacklist", user="Kim")
    found = log_terms.terms_of(record).split(" ")
    assert sorted(len(term) for term in found) == sorted([3] * 5 + [1 + len(text) for text in FIELDS])
    assert len(log_terms.terms_of(record._replace(url="http://ab")).split(" ")) == 1 + 4  # no trigram; a host and the fields
    query = LogQuery(text="a.test/", host="test", action="BLOCK", reason="blacklist", clients=frozenset({"user:kim"}))
    asked = {part.strip('()"') for part in match_of(query).split(" AND ")}
    assert asked <= set(found)


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
