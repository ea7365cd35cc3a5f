"""The index terms of a log record: the trigrams of its URL, and one term per field that can be filtered by.

SQLite's own trigram tokenizer indexes text only. Terms made here put fields and text into one full-text index, so that a
query with several conditions intersects sorted lists of rows and reads no others.
"""

from collections.abc import Sequence
from typing import Final

from gatewayfilter.model import LogQuery, LogRecord, host_of, searched_part
from gatewayfilter.model.log_query import SHORTEST_TEXT, USER_PREFIX

TERMS_VERSION: Final = 1
"""Raise it when the terms change: indexes of another version are rebuilt."""
_MOST_OF_TEXT: Final = 4
"""Trigrams of a searched text that the index is asked for; the records found are compared with the whole text."""
_LONGEST: Final = 100
_MOST_LABELS: Final = 8
_CLIENT, _USER, _HOST, _ACTION, _REASON, _CATEGORY, _SOURCE = "\ue001\ue002\ue003\ue004\ue005\ue006\ue007"
_INTO_TOKENS: Final = {code: chr(0x100 + code) for code in range(128) if not chr(code).isalnum()}
"""FTS5's `ascii` tokenizer parts text at ASCII characters other than letters and digits: they become letters beyond ASCII."""


def terms_of(record: LogRecord) -> str:
    """Returns the terms of a record, separated by spaces. Costs some 20 µs for a URL of 80 characters."""
    url = searched_part(record.url).translate(_INTO_TOKENS)
    terms = {url[start : start + SHORTEST_TEXT] for start in range(len(url) - SHORTEST_TEXT + 1)}
    terms.update(_term(_HOST, domain) for domain in _domains(host_of(record.url)))
    for kind, value in (
        (_CLIENT, record.client),
        (_USER, record.user),
        (_ACTION, record.action),
        (_REASON, record.reason),
        (_CATEGORY, record.category),
        (_SOURCE, record.source_list),
    ):
        if value:
            terms.add(_term(kind, value))
    return " ".join(terms)


def match_of(query: LogQuery, sample: Sequence[str] = ()) -> str:
    """Returns the FTS5 expression that finds every record that fulfils a query, and perhaps others; `""` for all records.

    Args:
        query: the conditions.
        sample: some URLs, by which the rarest parts of the text are chosen.
    """
    text = searched_part(query.text).translate(_INTO_TOKENS)
    parts = [_quoted(term) for term in _trigrams(text, sample)] if len(text) >= SHORTEST_TEXT else []
    for kind, value in (
        (_HOST, query.host),
        (_ACTION, query.action),
        (_REASON, query.reason),
        (_CATEGORY, query.category),
        (_SOURCE, query.source_list),
    ):
        if value:
            parts.append(_quoted(_term(kind, value)))
    if query.clients:
        parts.append(f"({' OR '.join(_quoted(_client_term(client)) for client in sorted(query.clients))})")
    return " AND ".join(parts)


def _trigrams(text: str, sample: Sequence[str]) -> list[str]:
    """Returns the trigrams of a text that are the rarest in a sample: lists of common ones cost most and exclude least."""
    every = dict.fromkeys(text[start : start + SHORTEST_TEXT] for start in range(len(text) - SHORTEST_TEXT + 1))
    known = [searched_part(url).translate(_INTO_TOKENS) for url in sample]
    return sorted(every, key=lambda trigram: sum(trigram in url for url in known))[:_MOST_OF_TEXT]


def _domains(host: str) -> list[str]:
    """Returns a host and the domains above it."""
    if not host or host.replace(".", "").isdecimal() or ":" in host:
        return [host] if host else []
    labels = host.split(".")[-_MOST_LABELS:]
    return list({host, *(".".join(labels[start:]) for start in range(len(labels)))})


def _client_term(client: str) -> str:
    user = client.removeprefix(USER_PREFIX)
    return _term(_CLIENT, client) if user == client else _term(_USER, user)


def _term(kind: str, value: str) -> str:
    return f"{kind}{value[:_LONGEST].lower().translate(_INTO_TOKENS)}"


def _quoted(term: str) -> str:
    return f'"{term}"'
