"""Forms of a page: which credentials their fields take, where they are sent, and which site the page declares to be.

Deviation: forms are read in a pass of their own, not by `_markup.pyx`. `likely_credentials` keeps ordinary pages out of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from gatewayfilter.compiled import load
from gatewayfilter.documents.html.tags import MAX_ATTRIBUTES, MAX_HTML, Token, attributes_of, tokens_of, unescaped

MAX_FIELDS = 500
"""Fields of a page that are read; a long questionnaire has 200."""
MOST_KEPT = 500_000
"""Characters of a page for which what it was asked about is kept."""
MOST_INPUTS = 1_000
"""Inputs whose meaning is kept: the pages of a site have the same ones. Of each, up to 600 characters."""
MAX_REFERENCES = 2_000
"""References and targets of a page that are kept."""
MAX_VALUE = 300
"""Characters of an attribute that are read."""
_HEAD = 3_000
"""Characters in which a browser's mark of a saved page is looked for."""


class Credential(StrEnum):
    """What a field takes, as evidence names it."""

    PASSWORD = "password"  # noqa: S105  # the name of a kind of field
    CARD = "card number"
    CARD_CHECK = "card security code"
    PIN = "card PIN"
    IDENTITY = "identity number"
    CODE = "one-time code"
    SEED = "wallet recovery phrase"
    LOGIN = "login name"


@dataclass(frozen=True, slots=True)
class PageForms:
    """Forms and declarations of a page, each list in the order of the page and bounded.

    Attributes:
        credentials: what its fields take.
        targets: actions, as written, of the forms that take credentials; `""` for a form without one. Where such fields stand
            in no form, those of all forms.
        declared: references of `canonical`, `og:url` and marks of a saved page.
        saved_from: where a program that saves pages found this one, as marked or declared, `""` for a page without a mark.
        names: site and application names of the head.
        references: absolute references of links, scripts, style sheets, icons and pictures, and addresses in hidden fields.
    """

    credentials: frozenset[Credential]
    targets: tuple[str, ...]
    declared: tuple[str, ...]
    saved_from: str
    names: tuple[str, ...]
    references: tuple[str, ...]


_FIELD = re.compile(r"<(?:[iI][nN][pP][uU][tT][\s/]([^>]{0,600})|[tT][eE][xX][tT][aA][rR][eE][aA][\s/])")
"""An input, with its attributes, or a text area."""
_SEED_AREA = re.compile(
    r"<textarea[\s/](?:(?!<textarea[\s/])[^>]){0,300}(?:mnemonic|seed|phrase|private.?key|助记词|私钥)", re.IGNORECASE
)
_SEED_WORDS = ("mnemonic", "phrase", "助记词", "私钥")
_KINDS = (
    (Credential.PIN, re.compile(r"(?:card|atm|debit).?pin\b|\bpin\b.{0,12}card|3d.?secure|\bvbv\b|电子密码器|取款密码")),
    (Credential.PASSWORD, re.compile(r"passw|pwd|passcode|\bpsw\b|\bpass\b|密码|口令")),
    (Credential.CARD_CHECK, re.compile(r"\bcvv2?\b|\bcvc2?\b|\bcsc\b|cc-csc|card.?(?:security|verification)|安全码")),
    (Credential.CARD, re.compile(r"card.?(?:num|no\b|holder)|cc-?(?:num|name|exp)|credit.?card|debit.?card|卡号|银行卡")),
    (Credential.SEED, re.compile(r"mnemonic|seed.?phrase|\bseed\b|recovery.?phrase|secret.?phrase|private.?key|助记词|私钥")),
    (
        Credential.IDENTITY,
        re.compile(r"\bssn\b|social.?security|\bsin.?number|national.?id|passport.?n|mother.?s?.?maiden|身份证"),
    ),
    (
        Credential.CODE,
        re.compile(
            r"\botp|otp\b|one-time-code|verif\w*.?code|security.?code|phone.?code|sms.?code|(?:2fa|mfa|auth).?code|验证码|动态码"
        ),
    ),
    (Credential.LOGIN, re.compile(r"e-?mail|phone|mobile|user.?(?:name|id)|\blogin|account|\btel\b|手机|账号|邮箱")),
)
_DESCRIBING = ("name", "id", "placeholder", "autocomplete", "aria-label", "title", "class")
_TYPED = frozenset({"", "text", "tel", "number", "email", "password", "search"})
_NOT_TYPED = frozenset({"hidden", "submit", "button", "image", "reset", "checkbox", "radio", "file", "color", "range", "date"})
_SAVED = re.compile(r"<!--\s*(?:saved from url=\(\d+\)|mirrored from )\s*([^\s>]{4,300})", re.IGNORECASE)
_DECLARING = frozenset({"og:url", "savepage-url", "al:web:url", "twitter:url"})
_NAMING = frozenset({"og:site_name", "application-name", "apple-mobile-web-app-title"})
_SAVING = frozenset({"savepage-url", "savepage-from"})
_READ = frozenset({"form", "/form", "input", "textarea", "meta", "link", "a", "area", "script", "img"})
_ABSOLUTE = re.compile(r"\b(?:href|src)\s*=\s*(?:[\"']\s*)?((?:https?:)?//[^\s\"'>]{1,300})", re.IGNORECASE)

_compiled = load("gatewayfilter.documents.html._markup")


def likely_credentials(html: str) -> frozenset[Credential]:
    """Returns what fields of a page seem to take, those in comments and scripts too: all that `read_forms` finds, or more.

    Linear; 1 to 2 µs for 1,000 characters of a page without fields. What it returned last is kept, unless that page was
    longer than `MOST_KEPT`: the classifier asks about a page, and its verdict asks again before it is kept.
    """
    global _asked  # noqa: PLW0603  one value, replaced as a whole: threads may share it
    html_asked, known = _asked
    if html_asked is not html:
        known = _likely_credentials(html)
        if len(html) <= MOST_KEPT:
            _asked = html, known
    return known


_asked: tuple[str, frozenset[Credential]] = ("", frozenset())


def _likely_credentials(html: str) -> frozenset[Credential]:
    found: set[Credential] = set()
    count, asks_for_seed, is_broken = 0, False, False
    for field in _fields_of(html):
        attributes = field[1]
        if attributes is None:
            asks_for_seed = asks_for_seed or _SEED_AREA.match(html, field.start(), MAX_HTML) is not None
            continue
        is_broken |= "<" in attributes  # such an input may hold a text area
        if credential := _credential_in(attributes):
            found.add(credential)
        count += 1
        if count > MAX_FIELDS:
            is_broken = True  # perhaps one of those left
            break
    if (asks_for_seed or is_broken) and not any(word in html for word in _SEED_WORDS):
        return frozenset(found)
    if asks_for_seed or (is_broken and _SEED_AREA.search(html, 0, MAX_HTML)):
        found.add(Credential.SEED)
    return frozenset(found)


@lru_cache(maxsize=MOST_INPUTS)
def _credential_in(attributes: str) -> Credential | None:
    values = attributes_of(attributes)
    kind = values.get("type", "").strip().lower()
    return None if kind in _NOT_TYPED else _credential_of(values, kind)


def _fields_of(html: str) -> Iterator[re.Match[str]]:
    """Yields the matches of `_FIELD`; where they may begin is found by compiled code, which does so in a tenth of the time."""
    if _compiled is None:
        yield from _FIELD.finditer(html, 0, MAX_HTML)
        return
    place = 0
    while (place := _compiled.field(html, place)) >= 0:
        field = _FIELD.match(html, place, MAX_HTML)
        if field is not None:
            yield field
        place = place + 1 if field is None else field.end()


def read_forms(html: str) -> PageForms | None:
    """Returns the forms of a page, `None` for one without a field for credentials. Never raises; linear and bounded.

    It cuts the markup into tokens once more (0.1 ms for 1,000 characters at most): ask `likely_credentials` first.
    """
    found = _Reader().read(tokens_of(html))
    saved = _SAVED.search(html, 0, _HEAD)
    if found.is_saved and not found.saved_from and found.declared:
        found.saved_from = found.declared[0]
    if saved and not found.saved_from:
        found.saved_from = _with_scheme(saved[1])
        found.declared.append(found.saved_from)
    if not found.credentials:
        return None
    return PageForms(
        frozenset(found.credentials),
        tuple(found.targets or found.other_targets),
        tuple(found.declared),
        found.saved_from,
        tuple(found.names),
        tuple(found.references),
    )


class _Reader:
    """Follows the tags that belong to forms, or declare or refer to a site."""

    def __init__(self) -> None:
        self.credentials: set[Credential] = set()
        self.targets: list[str] = []
        self.declared: list[str] = []
        self.saved_from = ""
        self.is_saved = False
        self.other_targets: list[str] = []
        self.names: list[str] = []
        self.references: list[str] = []
        self._fields = 0
        self._unlisted: list[str] = []  # the open form's action, until it is among the targets
        self._in_form = False

    def read(self, tokens: Sequence[Token]) -> "_Reader":
        """Takes all tags of a page."""
        for name, attributes in _tags_of(tokens):
            if name == "form":
                self._unlisted, self._in_form = [_cut(attributes_of(attributes).get("action", ""))], True
                if len(self.other_targets) < MAX_REFERENCES:
                    self.other_targets += self._unlisted
            elif name == "/form":
                self._unlisted, self._in_form = [], False
            elif name in {"input", "textarea"}:
                self._field(attributes, name)
            elif name == "meta":
                self._meta(attributes)
            elif attributes:
                self._reference(name, attributes)
        return self

    def _field(self, attributes: str, name: str) -> None:
        self._fields += 1
        if self._fields > MAX_FIELDS:
            return
        values = attributes_of(attributes)
        kind = values.get("type", "").strip().lower() if name == "input" else ""
        if kind == "hidden":
            if "://" in (value := _cut(values.get("value", ""))):
                self._refer(value)
            return
        if kind in _NOT_TYPED or (name == "textarea" and not self._in_form):
            return
        credential = _credential_of(values, kind)
        if credential is None or (name == "textarea" and credential is not Credential.SEED):
            return
        self.credentials.add(credential)
        if len(self.targets) < MAX_REFERENCES:
            self.targets += self._unlisted
            self._unlisted = []

    def _meta(self, attributes: str) -> None:
        values = attributes_of(attributes)
        content = _cut(values.get("content", ""))
        names = {values.get("property", "").lower(), values.get("name", "").lower()}
        self.is_saved = self.is_saved or "savepage-version" in names
        if not content:
            return
        for name in sorted(names):
            if name in _DECLARING and len(self.declared) < MAX_REFERENCES:
                self.declared.append(content)
            if name in _SAVING and not self.saved_from and content.startswith("http"):
                self.saved_from = content
            if name in _NAMING and len(self.names) < MAX_REFERENCES:
                self.names.append(content)

    def _reference(self, name: str, attributes: str) -> None:
        if name != "link":
            if found := _ABSOLUTE.search(attributes[:MAX_ATTRIBUTES]):
                self._refer(_cut(found[1]))
            return
        values = attributes_of(attributes)
        reference = _cut(values.get("href", ""))
        rel = values.get("rel", "").lower().split()
        if "canonical" in rel and len(self.declared) < MAX_REFERENCES:
            self.declared.append(reference)
        elif not {"alternate", "preconnect", "dns-prefetch"}.intersection(rel):
            self._refer(reference)

    def _refer(self, reference: str) -> None:
        if len(self.references) < MAX_REFERENCES and ("//" in reference[:8]):
            self.references.append(reference)


def _credential_of(values: dict[str, str], kind: str) -> Credential | None:
    """Returns what a field takes by its attributes and its type, `None` for what is no credential."""
    described = unescaped(" ".join(values.get(key, "")[:MAX_VALUE] for key in _DESCRIBING)).lower().replace("_", " ")
    if kind not in _TYPED:
        described = f"{described} {kind[:MAX_VALUE]}"
    credential = next((found for found, sign in _KINDS if sign.search(described)), None)
    if kind == "password" and credential not in {Credential.PIN, Credential.CARD_CHECK, Credential.SEED}:
        return Credential.PASSWORD
    return Credential.LOGIN if credential is None and kind in {"email", "tel"} else credential


def _tags_of(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for _, written, attributes, _ in tokens:
        name = written.lower()
        if name in _READ:
            yield name, attributes


def _cut(value: str) -> str:
    return unescaped(value[:MAX_VALUE]).strip()


def _with_scheme(reference: str) -> str:
    return reference if "://" in reference[:8] else f"http://{reference}"
