"""Explanations of deciders in the language of the page.

The engine explains in English (`DeciderAnswer.explanation`): `check` prints it, the API has it. Here its sentences are found by
their templates and written anew. A sentence without a template stays English, and is marked as such.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from gatewayfilter.web.rendering.sentence_templates import SentenceTemplate, Told, sentence_templates


def _n(message: str) -> str:
    """Marks a message for translation."""
    return message


HEADS: Final = (
    _n("URLs on no list are allowed, and offered to the crawler"),
    _n("none of your own rules covers this URL"),
    _n("a person's rule allows %(rule)s"),
    _n("a person's rule blocks %(rule)s"),
    _n("none of %(count)s keys of this URL is on any list"),
    _n("%(count)s of %(all)s keys may be listed: %(names)s"),
    _n("the quick look found that no list has it"),
    _n("no key of this URL is on the blacklist"),
    _n("no key of this URL is on the whitelist"),
    _n("%(key)s was learned since the snapshot, but %(why)s"),
    _n("%(list)s lists %(key)s, but %(why)s"),
    _n("%(list)s (%(category)s) lists %(key)s: %(detail)s"),
    _n("%(list)s (%(category)s) lists %(key)s"),
    _n("%(list)s lists %(key)s: %(detail)s"),
    _n("%(list)s lists %(key)s"),
    _n("%(rule)s of %(list)s, line %(line)s blocks it, the stub %(stub)s stands in for it"),
    _n("%(rule)s of %(list)s, line %(line)s blocks it"),
    _n("the exception %(rule)s of %(list)s, line %(line)s, lifts a block"),
    _n("no rule in force blocks it"),
    _n("another spelling of this URL is blocked: %(rule)s of %(list)s"),
    _n("another spelling of this URL is blocked: %(rule)s"),
    _n("this URL has one spelling"),
    _n("nothing blocks other spellings of this URL: %(names)s"),
    _n("no client has this address: group %(group)s, policies %(names)s"),
    _n("client %(client)s, group %(group)s, policies %(names)s"),
    _n("filtering is not paused for this client"),
    _n("filtering is paused (%(scope)s) until %(until)s, but for malware, phishing and fraud"),
    _n("filtering is paused (%(scope)s) until %(until)s"),
    _n("no rule for these clients covers this URL"),
    _n("the rule %(rule)s allows it"),
    _n("the rule %(rule)s blocks it"),
    _n("no schedule has an open window"),
    _n("in force: %(names)s"),
    _n("belongs to %(names)s, which no policy blocks"),
    _n("belongs to %(names)s: %(why)s"),
    _n("no policy of this client sets anything for categories, lists, unknown pages or connections"),
    _n("no term is searched for"),
    _n("no search engine"),
    _n("%(policy)s blocks a search for %(term)s"),
    _n("%(policy)s blocks a the search cannot be read"),
    _n("%(policy)s blocks the response: %(detail)s"),
    _n("blocked in a response: %(names)s"),
    _n("it is loaded by a page of %(rule)s, which is approved (%(detail)s)"),
)
"""Sentences that an explanation may begin with."""
PARTS: Final = (
    _n("switched off: %(names)s"),
    _n("%(count)s more of people's rules cover it"),
    _n("it is from the fleet's publisher, and locked"),
    _n("it is from the fleet's publisher"),
    _n("also matching: %(rules)s and %(count)s more"),
    _n("also matching: %(rules)s"),
    _n("%(count)s matching rules belong to categories that are switched off"),
    _n("it asks for %(url)s instead and leaves out %(names)s: %(rules)s"),
    _n("it asks for %(url)s instead: %(rules)s"),
    _n("it leaves out %(names)s: %(rules)s"),
    _n("of a page it would change the response: %(rules)s"),
    _n("the stub is named by %(rules)s"),
    _n("it hangs on the response's headers or its server's address: %(rules)s"),
    _n("%(switch)s on this page: %(rules)s"),
    _n("minutes are left of %(names)s"),
    _n("source %(source)s: on"),
    _n("source %(source)s: off"),
    _n("block: %(categories)s"),
    _n("allow: %(categories)s"),
    _n("review: %(categories)s"),
    _n("tls: %(value)s"),
    _n("strictness: %(value)s"),
    _n("log: %(value)s"),
    _n("unknown: %(value)s"),
    _n("%(policy)s blocks everything"),
    _n("%(policy)s blocks %(category)s"),
)
"""Sentences that follow, or that stand alone."""
REASONS: Final = (
    _n("that has expired"),
    _n("the category %(category)s is switched off"),
    _n("its category %(category)s is switched off"),
    _n("that was taken back or judged anew since"),
    _n("it is not certain enough for this policy (strictness=relaxed)"),
    _n("the policy %(policy)s blocks %(service)s"),
    _n("%(count)s minutes of %(category)s are used up until %(until)s"),
)
"""What stands for `why`."""
_LONGEST: Final = 4_000
_MOST_PARTS: Final = 60
_FORMS: Final = {
    "count": r"[\d,]+", "all": r"[\d,]+", "line": r"\d+", "key": r"\S+", "category": r"[\w-]+", "policy": r"[^;:]+",
    "source": r"[^;:]+", "value": r"[\w-]+", "until": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*", "switch": r"[\w-]+",
}  # fmt: skip
_NAMED_RULE: Final = re.compile(r", line (\d+)(, important)?\)")


class ExplanationTexts:
    """Writes explanations in one language.

    Args:
        language: of the pages; English is not translated.
        translate: returns a message in the language.
        category: returns the title of a category.
    """

    def __init__(self, language: str, translate: Callable[[str], str], category: Callable[[str], str]) -> None:
        self._english = language == "en"
        self._translate = translate
        self._category = category

    def __call__(self, explanation: str, moment: Callable[[float], str]) -> Told:
        """Returns an explanation as the page shows it: at most 4,000 characters, and 61 sentences.

        Args:
            explanation: as `explain` writes it.
            moment: returns date and time of Unix seconds.
        """
        text = explanation[:_LONGEST]
        if self._english:
            return Told(text, is_english=True)
        first, *others = text.split("; ")  # in a rule, too: what has no template stays as it is
        parts = [(first, self._written(_HEAD_TEMPLATES, first, moment))]
        parts += [(other, self._written(_PART_TEMPLATES, other, moment)) for other in others[:_MOST_PARTS]]
        following, text = self._translate(_n("; ")), parts[0][1] or first
        text += "".join(f"; {part}" if told is None else following + told for part, told in parts[1:])
        return Told(text, is_english=all(told is None for _, told in parts))

    def _written(self, templates: tuple[SentenceTemplate, ...], text: str, moment: Callable[[float], str]) -> str | None:
        value = partial(self._value, moment=moment)
        for template in templates:
            if (found := template.written(text, self._translate, value)) is not None:
                return found
        return None

    def _value(self, name: str, value: str, moment: Callable[[float], str]) -> str:
        match name:
            case "why":
                return self._written(_REASON_TEMPLATES, value, moment) or value
            case "category" | "categories":
                return "、".join(map(self._category, value.split(", ")))
            case "until":
                return _when(value, moment)
            case "rules":
                return _NAMED_RULE.sub(self._line, value)
        return value

    def _line(self, found: re.Match[str]) -> str:
        important = self._translate(_n(", important")) if found[2] else ""
        return self._translate(_n(", line %(number)s")) % {"number": found[1]} + important + ")"


def _when(value: str, moment: Callable[[float], str]) -> str:
    try:
        return moment(datetime.fromisoformat(value).timestamp())
    except ValueError:
        return value


_REASON_TEMPLATES: Final = sentence_templates(REASONS, _FORMS)
_PART_TEMPLATES: Final = sentence_templates(PARTS, _FORMS)
_HEAD_TEMPLATES: Final = (*sentence_templates(HEADS, _FORMS), *_PART_TEMPLATES)
