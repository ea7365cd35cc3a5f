"""Documents of html5lib-tests of which the reader shows another text than the expected tree holds, each group with its reason.

A document is named by its file and its number in it.
"""

_NOT_RENDERED = (
    "blocks:10 blocks:11 blocks:12 blocks:13 "  # closed details and dialog
    "ruby:15 ruby:16 ruby:17 ruby:18 ruby:19 tests19:15 webkit01:28 "  # rp
    "tests1:87 tests15:5 tests2:46 tests2:47 tests7:0 tests7:1 "  # title in the body
    "tests10:32 tests10:33 tests18:22 tests20:49 "  # desc and title of svg
    "tests2:39 webkit02:37 webkit02:39 "  # datalist
    "webkit02:44 webkit02:45 webkit02:46 webkit02:47 "  # closed select, of which a part is shown twice
    "noscript01:16 tests18:4 "  # noscript
)
NOT_RENDERED = frozenset(_NOT_RENDERED.split())
"""Text that the tree holds and no browser renders: it is read as hidden, and does not count."""
SCRIPTING = frozenset([*(f"tests16:{number}" for number in (84, 86, 88, 181, 183, 185)), "tests5:16", "webkit01:0", "webkit01:1"])
"""Trees of a browser without scripts, of which the same documents have another tree with scripts, or of a script that was run."""
ORDER = frozenset("adoption01:10 adoption01:11 tests1:78 tests1:79 tests7:30".split())  # noqa: SIM905
"""Text that stands beside cells, thus goes before the table: nothing is missing, it is read where it stands."""
FRAMES = frozenset("tests18:17 tests18:18 tests18:20 tests19:40 tests2:5 tests2:6 tests2:7 tests6:7".split())  # noqa: SIM905
"""Text beside a `frameset`, which no browser shows: it counts. Only the author of a page of frames can put it there."""
ZEROS = frozenset({"plain-text-unsafe", "pending-spec-changes-plain-text-unsafe"})
"""Files about zero characters, which are left out where a browser shows U+FFFD: words are found in spite of them."""
ALLOWED = NOT_RENDERED | SCRIPTING | ORDER | FRAMES
