"""Destinations and rewritten URLs, at the edges of their steps: `gatewayfilter.engine.adblock.syntax.url_transform`."""

import pytest

from gatewayfilter.engine.adblock.syntax.url_transform import MAX_STEPS, UriTransform, UrlSkip
from gatewayfilter.errors import RuleError
from gatewayfilter.urls import parse_url


def target(value: str, url: str) -> str:
    found = UrlSkip(value).target(parse_url(url))
    return "" if found is None else found.text


GO = "https://go.example/"


def test_where_the_steps_lead() -> None:
    for value, url, found in (
        ("?u", f"{GO}?v=1&u=https://x.example/a+b", "https://x.example/a%20b"),
        ("?u", f"{GO}?u=http://x.example:81/a?b=1", "https://x.example:81/a?b=1"), ("?u", f"{GO}?u=", ""),
        ("?u", f"{GO}?u", ""), ("?u", f"{GO}?U=https://x.example/", ""), ("?u+v", f"{GO}?u+v=https://x.example/", ""),
        ("?u", f"{GO}?%75=https://x.example/", "https://x.example/"),
        ("?u", f"{GO}?&&u=https://x.example/", "https://x.example/"),
        ("?u", f"{GO}?u=https://x.example/&u=https://y.example/", "https://x.example/"),
        ("?u", f"{GO}?u=ftp://x.example/", ""), ("&1", f"{GO}?https%253A//x.example/", "https://x.example/"),
        ("&2", f"{GO}?a&https://x.example/=1", "https://x.example/"), ("&3", f"{GO}?a&https://x.example/", ""),
        ("&002", f"{GO}?a&https://x.example/", "https://x.example/"),
        ("&120", f"{GO}?{'a&' * 119}https://x.example/", "https://x.example/"), ("&1", GO, ""),
        ("?u ?v", f"{GO}?u=/a%3Fv%3Dhttps://x.example/", ""),
        ("?u ?v", f"{GO}?u=HTTP://b.example/%3Fv%3Dhttps://x.example/%23y", "https://x.example/"),
        ("?u +https", f"{GO}?u=x.example/a", "https://x.example/a"),
        ("?u +https", f"{GO}?u=HTTPS://x.example/a", "https://x.example/a"), ("?u +https", f"{GO}?u=ftp://x.example/a", ""),
        ("?u +https", f"{GO}?u=x.example/a://b", "https://x.example/a://b"),
        ("?u +https", f"{GO}?u=x.example:81/a", "https://x.example:81/a"),
        ("?u +https", f"{GO}?u=x.example/?v=https://y.example/", "https://x.example/?v=https://y.example/"),
        ("?u +https", f"{GO}?u=http://x.example/?v=http://y.example/", "https://x.example/?v=http://y.example/"),
        ("?u -base64", f"{GO}?u=aHR0cHM6Ly94LmV4YW1wbGUvYQ%3D%3D", "https://x.example/a"),
        ("?u -base64", f"{GO}?u=aHR0cHM6%0ALy94LmV4YW1wbGUvYQ", "https://x.example/a"),
        ("?u -base64", f"{GO}?u=aHR0cHM6Ly94LmV4YW1wbGUvPw-", ""),
        ("?u -safebase64", f"{GO}?u=aHR0cHM6Ly94LmV4YW1wbGUvP34_", "https://x.example/?~?"),
        ("/go[.]example/(.*)/", f"{GO}https://x.example/", "https://x.example/"), ("/none(.)/", GO, ""), ("/^(.*)$/", GO, ""),
        ("-uricomponent", GO, ""), ("-uricomponent", "http://go.example/", ""),
    ):  # fmt: skip
        assert target(value, url) == found, (value, url)


def test_steps_are_checked() -> None:
    assert UrlSkip("?u -blocked").skips_blocked is True
    assert UrlSkip("?u").skips_blocked is False
    assert target("-blocked ?u", f"{GO}?u=https://x.example/") == "https://x.example/"
    UrlSkip(" ".join(["?u"] * MAX_STEPS))
    UrlSkip("&1")
    UrlSkip("&999")
    for value, why in (
        ("", "1 to 16 steps"), (" ".join(["?u"] * (MAX_STEPS + 1)), "1 to 16 steps"), ("?", "unknown step '[?]'"),
        ("&", "unknown"), ("&0", "unknown"),
        ("&1000", "unknown"), ("&x", "unknown"), ("//", "unknown"), ("/x", "unknown"), ("/x/", "has no group"),
        ("+http", "unknown"), ("x" * 101, f"'{'x' * 100}' of"),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=why):
            UrlSkip(value)


def test_where_rewriting_leads() -> None:
    for value, pattern, url, found in (
        ("/a/b/", "x", "https://x.example/a?a", "https://x.example/b?a"),
        ("/a/b/g", "x", "https://x.example/a?a", "https://x.example/b?b"), ("/b/a/", "x", "https://x.example/a", None),
        (r"/\/a/b/", "x", "https://x.example/a", None), ("/a/b#c/", "x", "https://x.example/a", "https://x.example/b"),
        ("/a/aa/", "x", "https://x.example/a", None), ("/^.a$/\\/ab/", "x", "https://x.example/a", "https://x.example/ab"),
        ("/a/b/", "x", "https://x.example:81/a", "https://x.example:81/b"),
        ("//y.example/", "/x[.]example/", "https://x.example/a", "https://y.example/a"),
        ("//ftp/", "/https/", "https://x.example/a", None), ("//http/", "/https/", "https://x.example/a", None),
        ("//[/", "/x[.]example/", "https://x.example/a", None),
    ):  # fmt: skip
        got = UriTransform(value, pattern).target(parse_url(url))
        assert (got and got.text) == found, (value, url)


def test_a_rewriting_without_an_expression_takes_that_of_its_rule() -> None:
    for pattern in ("", "//", "/x", "x/", "xyz"):
        with pytest.raises(RuleError, match="needs a rule that is one"):
            UriTransform("//y/", pattern)
    UriTransform("//y/", "/x/")
