"""Sets of names of tags and of `meta` elements by what they do to the text of a page, for both readers of markup."""

from gatewayfilter.documents.html.rendering import NEVER_RENDERED, SPECIAL

_PARTING = (
    "p div ul ol dl dt dd li table caption colgroup col thead tbody tfoot tr td th section article header footer nav aside "
    "main form fieldset legend h1 h2 h3 h4 h5 h6 hgroup pre listing xmp plaintext blockquote address center figure "
    "figcaption hr br details summary dialog menu dir select option optgroup datalist textarea button input img svg video "
    "audio canvas object embed iframe html head body frameset frame marquee search noframes text foreignobject picture"
)
PARTING_TAGS = frozenset(_PARTING.split())
"""Tags that end a block; unknown ones do not."""
_MEANINGFUL = SPECIAL | NEVER_RENDERED | {"a", "meta", "img"}
PARTS = frozenset(slash + name for name in PARTING_TAGS - _MEANINGFUL for slash in ("", "/")) | {
    f"/{name}" for name in PARTING_TAGS & _MEANINGFUL - {"a", "select"}
}
"""Names of tags, end tags with their slash, that end a block and mean nothing else."""
_OTHERS = "b i em strong span small sup sub label font u s source use path g symbol script style link time cite code abbr"
PLAIN = frozenset(slash + name for name in _OTHERS.split() for slash in ("", "/"))
"""Frequent tags that neither end a block nor mean anything without attributes."""
TITLES = frozenset({"og:title", "twitter:title"})
DESCRIPTIONS = frozenset({"description", "og:description", "twitter:description"})
KEYWORDS = frozenset({"keywords", "news_keywords"})
"""Names of `meta` elements with a text for the zone."""
