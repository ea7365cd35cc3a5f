"""Any list, any URL, any bytes: no exception, and every way of looking finds the same. The checks are those of tests/fuzz/."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from tests.case_tables import all_cases
from tests.fuzz.adblock_checks import LINES, URLS, check_blob, check_json_lines, check_list, check_literals, check_url

PIECES = st.sampled_from(
    [
        *("@@", "||", "|", "^", "*", "/", "$", ",", "=", "~", ".", "-", "ads", "example", "ads.example", "banner", "a.net", "js"),
        *("domain=", "third-party", "script", "image", "document", "important", "match-case", "to=", "denyallow=", "method="),
        *(
            "removeparam=",
            "redirect=noop.js",
            "csp=",
            "all",
            "popup",
            "badfilter",
            "strict1p",
            "(",
            ")",
            "[",
            "]",
            "\\",
            "+",
            "{2}",
        ),
        *("0.0.0.0 ", "!#if ", "##", "#@#", " ", "%61", "ü", "\x00", "\ud800", "\u4e2d", "?", ":", "&", "300x600", "A", "1"),
    ]
)
RULES = st.one_of(
    st.lists(PIECES, max_size=9).map("".join),
    st.sampled_from(LINES),
    st.tuples(st.sampled_from(LINES), PIECES, st.integers(0, 40)).map(
        lambda case: case[0][: case[2]] + case[1] + case[0][case[2] :]
    ),
    st.text(max_size=40),
)
TARGETS = st.one_of(
    st.tuples(st.sampled_from(URLS), st.lists(PIECES, max_size=8).map("".join)).map("".join),
    st.lists(PIECES, max_size=12).map(lambda pieces: "https://" + "".join(pieces)),
    st.text(max_size=60),
)


@given(st.lists(RULES, max_size=8).map("\n".join))
@example("||a.net^$domain=\n@@||")
@example("/(a|b/")
@example("T")
@example("http\n@@/")
@example("/s/$script")
@example("/ads\\n-x/")
@example("ads\udcd7?#x")
@example("0.0.0.0 \x00")
@example("$removeparam=")
@settings(max_examples=30, deadline=None)
def test_any_list(text: str) -> None:
    check_list(text)


@given(TARGETS, TARGETS)
@settings(max_examples=30, deadline=None)
def test_any_url(url: str, source: str) -> None:
    check_url(f"{url}\n{source}")


@given(st.lists(st.binary(max_size=12), min_size=2, max_size=12).map(b"\n".join))
@settings(max_examples=30, deadline=None)
def test_any_literals(data: bytes) -> None:
    check_literals(data)


@given(st.binary(max_size=60))
@settings(max_examples=30, deadline=None)
def test_any_damage(data: bytes) -> None:
    check_blob(data)


@given(st.one_of(st.binary(max_size=200), st.lists(TARGETS, max_size=4).map(lambda urls: str(urls).encode(errors="replace"))))
@settings(max_examples=30, deadline=None)
def test_any_bulk_input(data: bytes) -> None:
    check_json_lines(data)


@all_cases(
    "line",
    [
        "a" * 1_000_000,
        "||" + "a." * 300_000 + "^",
        "/" + "(a" * 50_000,
        "*" * 200_000,
        "x$domain=" + "|".join(f"h{number}.net" for number in range(50_000)),
        "x$" + "script," * 100_000,
        "$" * 100_000,
        "/(a+)+$/",
        "/" + "a?" * 1_000 + "/",
        "\x00" * 10_000,
    ],
)
def test_monstrous_lines_end(line: str) -> None:
    parse_line(line)
    builder = AdblockBuilder(judge=False)
    report = builder.add_list(0, [line])
    builder.build()
    assert report.accepted + report.rejected + report.cosmetic + report.comments + sum(report.unsupported.values()) == 1
