"""Values of a policy that act on requests: what is taken, in which form, and what is refused."""

import pytest

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Policy, from_record, inherited_values, policy_values, to_record, with_value
from gatewayfilter.model.values.request_values import (
    LONGEST_TERM,
    MOST_DOWNLOAD_MB,
    MOST_TERMS,
    SearchEngine,
    canonical_value,
    engines_of,
    megabytes_of,
    request_key,
    terms_of,
    types_of,
)


def changed(key: str, text: str, policy: Policy | None = None) -> Policy:
    return with_value(policy or Policy("kids"), key, text, categories=(), sources=())


@pytest.mark.parametrize(
    ("key", "text", "stored"),
    [
        ("safesearch", "on", "on"),
        ("safesearch", "Google, bing", "bing,google"),
        ("youtube", "strict", "strict"),
        ("search_terms", " make  a bomb ,casino,casino,", "make a bomb,casino"),
        ("search-terms", "none", "none"),
        ("file_types", ".EXE, video", "exe,video"),
        ("max_download_mb", "0100", "100"),
        ("max-download-mb", "0", "0"),
        ("max-download-mb", str(MOST_DOWNLOAD_MB), str(MOST_DOWNLOAD_MB)),
        ("max-download-mb", "0000007", "7"),
        ("search-terms", "x" * LONGEST_TERM, "x" * LONGEST_TERM),
        ("search-terms", ",".join(map(str, range(MOST_TERMS))), ",".join(map(str, range(MOST_TERMS)))),
        ("safesearch", "OFF", "off"),
        ("file-types", "none", "none"),
        ("strictness", "relaxed", "relaxed"),
        ("tls", "sni-only", "sni-only"),
        ("log_privacy", "host", "host"),
    ],
)
def test_a_value_is_kept_in_canonical_form(key: str, text: str, stored: str) -> None:
    policy = changed(key, text)
    name = key.replace("_", "-")
    assert policy_values(policy) == {name: stored}
    assert from_record(to_record(policy)) == policy
    assert policy_values(changed(key, "", policy)) == {}


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("safesearch", "baidu", "Baidu has no SafeSearch"),
        ("safesearch", "gogle", "did you mean 'google'"),
        ("safesearch", ",", "an empty list"),
        ("youtube", "on", "one of off, moderate, strict"),
        ("search-terms", "x" * 101, "longer than 100"),
        ("search-terms", ",".join(map(str, range(1001))), "1 to 1000"),
        ("file-types", "exee", "did you mean 'exe'"),
        ("max-download-mb", "-1", "whole number"),
        ("max-download-mb", "99999999", "whole number"),
        ("max-download-mb", "\u0661", "whole number"),
        ("max-download-mb", str(MOST_DOWNLOAD_MB + 1), "whole number"),
        ("max-download-mb", "00000007", "whole number"),
        ("search-terms", ",", "1 to 1000"),
        ("file-types", "quite-another-thing", "; there are "),
        ("tls", "off", "one of intercept"),
        ("log-privacy", "none", "one of full"),
        ("safe-search", "on", "there is no value"),
    ],
)
def test_what_is_none_is_refused_in_one_sentence(key: str, text: str, sentence: str) -> None:
    with pytest.raises(PolicyError, match=sentence):
        changed(key, text)


def test_values_of_a_later_version_are_left_out() -> None:
    record = to_record(Policy("kids"))
    record["requests"] = {"safesearch": "on", "youtube": "tiny", "new": "x", "tls": 3}
    assert policy_values(from_record(record)) == {"safesearch": "on"}  # type: ignore[arg-type]
    record["requests"] = ["safesearch"]
    assert policy_values(from_record(record)) == {}  # type: ignore[arg-type]


def test_each_value_comes_from_the_nearest_policy() -> None:
    near, far = changed("youtube", "off"), changed("tls", "page-only", changed("youtube", "strict"))
    found = {value.key: (value.value, value.origin) for value in inherited_values([("group kids", near), ("default", far)])}
    assert found == {"youtube": ("off", "group kids"), "tls": ("page-only", "default")}


def test_what_a_value_stands_for() -> None:
    assert engines_of("on") == set(SearchEngine)
    assert [*map(engines_of, ("off", "bing"))] == [frozenset(), frozenset({SearchEngine.BING})]
    assert (terms_of("none"), terms_of("b, a  c,b")) == ((), ("b", "a c"))
    assert [*map(types_of, ("none", ".exe,video"))] == [frozenset(), frozenset({"exe", "video"})]
    assert megabytes_of("12") == 12
    assert [request_key(key) for key in ("max_download_mb", "tls", "block-all", "")] == ["max-download-mb", "tls", "", ""]
    assert canonical_value("tls", " page-only ") == "page-only"
