"""Sentences of errors, of the crawler's failures, and names of audited actions, in the language of the page.

The program raises errors in English; the API and commands show them so. Pages find a sentence by its template here and show it in
their language. One without a template stays English.
"""

import re
from collections.abc import Callable
from typing import Final

from gatewayfilter.web.rendering.list_refusals import LIST_REFUSALS
from gatewayfilter.web.rendering.refusals import REFUSALS
from gatewayfilter.web.rendering.sentence_templates import SentenceTemplate, Told, sentence_templates
from gatewayfilter.web.rendering.setting_refusals import SETTING_REFUSALS
from gatewayfilter.web.rendering.state_refusals import STATE_REFUSALS


def _n(message: str) -> str:
    """Marks a message for translation."""
    return message


FAILURES: Final = (
    _n("robots.txt does not allow it"),
    _n("robots.txt cannot be had: %(why)s"),
    _n("answered with status %(status)s"),
    _n("cannot connect: %(detail)s"),
    _n("more than %(count)s redirects"),
    _n("no TLS connection could be agreed on"),
    _n("no answer began within %(seconds)s s"),
    _n("not answered within %(seconds)s s"),
    _n("no outbound proxy is usable"),
    _n("redirected to what is not an http(s) URL"),
    _n("the redirects go in a circle"),
    _n("the answer broke off"),
    _n("the answer is longer than is read"),
    _n("the answer is not valid HTTP"),
    _n("the connection was lost"),
    _n("the host name cannot be resolved"),
    _n("the outbound proxy did not get through"),
    _n("the outbound proxy requires other credentials"),
    _n("the server's certificate is not valid"),
    _n("other files are read first"),
    _n("%(host)s may not be requested for another %(seconds)s s"),
    _n("the verdict could not be kept"),
    _n("the crawler was stopped"),
    _n("not a URL"),
    _n("port %(port)s may not be crawled"),
    _n("%(address)s is not a public address"),
    _n("%(address)s is an address of this machine or of its own network"),
    _n("%(address)s is not an address"),
    _n("%(scheme)s is not fetched"),
    _n("the URL is longer than %(count)s characters"),
    _n("nothing was fetched"),
    _n("a page of this kind is not classified (status %(status)s)"),
)
"""Why a page was not fetched."""
PROBLEMS: Final = (
    _n("%(url)s may not be crawled: %(why)s"),
    _n("log in first"),
    _n("name, password or code is wrong"),
    _n("too many attempts: wait %(seconds)s s"),
    _n("this needs the role %(role)s"),
    _n("this page was open for too long, or the request did not come from it: load it again"),
    _n("a token has no session"),
    _n("there is no such session"),
    _n("there is no such pause"),
    _n("this decision is no longer in the log"),
    _n("there is no decision %(number)s in the log"),
    _n("there is an account already: log in"),
    _n("allow or block it, for 1h, 1d or ever"),
    _n("there is no single sign-on; the setting web.oidc.issuer turns it on"),
    _n("somebody has changed this since: load it again"),
    _n("%(key)s: somebody has changed this since; the page shows what is in force"),
    _n("request %(number)s was answered meanwhile: it is %(state)s"),
    _n("rule %(number)s was changed since you read it; look at it again"),
    _n("the lists are being worked on; try again when that is done"),
    _n("this took longer than %(seconds)s s or too much memory"),
    _n("this is no place in the queue"),
    _n("send the page, or its address"),
    _n("there is no account %(name)s any more"),
    _n("there is no account %(name)s"),
    _n("there is an account %(name)s already"),
    _n("there are %(count)s accounts already"),
    _n("this is the last admin; make another account an admin first"),
    _n("this is not the present code; is the clock of the phone right?"),
    _n("the name of an account has 1 to %(count)s characters"),
    _n("the name of an account consists of letters, digits and . _ - @ +"),
    _n("the name of an account begins with a letter or a digit"),
    _n("a password has at least %(count)s characters"),
    _n("a password has at most %(count)s characters"),
    _n("this password is among the first that are tried; choose another one"),
    _n("a password is not the name of the account"),
    _n("the account has a token %(name)s already"),
    _n("an account has at most %(count)s tokens"),
    _n("the name of a token has 1 to %(count)s visible characters"),
    _n("there is no change %(number)s that can be taken back"),
    _n("there is no crawl task %(name)s"),
    _n("there is no link %(number)s"),
    _n("there is no request %(number)s"),
    _n("there is no rule %(number)s any more"),
    _n("there is no rule %(number)s"),
    _n("there is no source %(name)s"),
    _n("there is no list %(name)s in the catalogue"),
    _n("there is no task %(number)s"),
    _n("there is no group %(name)s"),
    _n("there is no client %(name)s"),
    _n("there is no policy %(name)s"),
    _n("there is no schedule %(name)s"),
    _n("there is no quota %(name)s"),
    _n("there is no time zone %(name)s; examples: Europe/Berlin, Asia/Shanghai, UTC"),
    _n("there is a client %(name)s already"),
    _n("there is a group %(name)s already"),
    _n("there is a policy %(name)s already"),
    _n("the group default cannot be renamed"),
    _n("the group default cannot be removed"),
    _n("the group %(name)s still has clients: %(names)s"),
    _n("the policy %(name)s is used by %(names)s"),
    _n("%(matcher)s belongs to the client %(name)s already"),
    _n("%(text)s cannot be a name: 1 to %(count)s characters, none of them invisible"),
    _n("%(text)s cannot be a name: it contains %(characters)s"),
    _n("%(text)s is no time: write 7d, 12h or 2030-01-31T18:00"),
    _n("%(text)s is no time: a day goes from 00:00 to 24:00"),
    _n("%(text)s is too far away"),
    _n("%(text)s has passed"),
    _n("%(text)s is no day: write 2030-01-31"),
    _n("%(text)s is no host"),
    _n("%(text)s is no number of minutes"),
    _n("%(text)s is neither an address nor the name of a client"),
    _n("a quota has 1 to %(count)s minutes a day"),
    _n("a pause lasts more than nothing and at most a year"),
    _n("a bedtime has at least one window"),
    _n("the time is before 1970 or after 2099"),
    _n("the report ends before it begins"),
    _n("the client %(name)s would have no address; use `client remove`"),
    _n("an answer has at most %(count)s characters, not %(number)s"),
    _n("request %(number)s waits already"),
    _n("choose whom the link is for"),
    _n("the log does not name this device: choose a group or everybody"),
    _n("a rule for some clients allows or blocks; splicing is for everybody"),
    _n("rule %(number)s has this pattern, group and scope already"),
    _n("write a rule: a host, a page, a wildcard or a /regular expression/"),
    _n("choose a file, or paste its text"),
    _n("write a phrase a line, of at most %(count)s characters"),
    _n("%(name)s comes with the program: switch it off"),
    _n("%(address)s is neither a list of the catalogue nor an http(s) address"),
    _n("no authority is waiting"),
    _n("nothing was decided of task %(number)s"),
    _n("the change %(number)s can be taken back by an admin only"),
    _n("the change %(number)s was taken back already, by %(name)s"),
    _n("the change %(number)s was taken back already"),
    _n("the request %(number)s was decided again since"),
    _n("the review task %(number)s was decided again since"),
    _n("the %(kind)s %(name)s was changed since"),
    _n("the link is no longer there"),
    _n("there is no category %(name)s; %(hint)s"),
    _n("the database does not answer"),
    _n("a fault of the program; the log has it"),
    _n("Not Found"),
    _n("Method Not Allowed"),
)
"""Why something was refused."""
ACTIONS: Final = {
    "rule.added": _n("Rule added"),
    "rule.changed": _n("Rule changed"),
    "rule.removed": _n("Rule removed"),
    "rule.switched": _n("Rule switched on or off"),
    "rule.imported": _n("Rules imported"),
    "list.added": _n("List added"),
    "list.removed": _n("List removed"),
    "list.switched": _n("List switched on or off"),
    "list.updated": _n("Lists updated"),
    "list.published": _n("Lists published"),
    "source.added": _n("List added"),
    "source.removed": _n("List removed"),
    "source.enabled": _n("List switched on"),
    "source.disabled": _n("List switched off"),
    "queue.added": _n("Page put in the queue"),
    "queue.paused": _n("Fetching paused"),
    "queue.resumed": _n("Fetching resumed"),
    "queue.retried": _n("Failed pages tried again"),
    "queue.cleared": _n("Queue emptied"),
    "page.crawled": _n("Page fetched and judged"),
    "setting.changed": _n("Setting changed"),
    "setup.done": _n("Set-up finished"),
    "user.added": _n("Account added"),
    "user.removed": _n("Account removed"),
    "user.disabled": _n("Account disabled or enabled"),
    "user.linked": _n("Account linked to single sign-on"),
    "user.password": _n("Password changed"),
    "user.renamed": _n("Account renamed"),
    "user.role": _n("Role changed"),
    "user.second-factor": _n("Second factor set up"),
    "user.second-factor-removed": _n("Second factor removed"),
    "token.added": _n("Token made"),
    "token.removed": _n("Token removed"),
    "backup.downloaded": _n("Backup downloaded"),
    "backup.restored": _n("Backup restored"),
    "ca.renewed": _n("Certificate renewed"),
    "authority.renewed": _n("Certificate renewed"),
    "pinned-app.removed": _n("App inspected again"),
    "words.added": _n("Words added"),
    "words.removed": _n("Words removed"),
    "words.imported": _n("Words imported"),
    "log.purged": _n("Log purged"),
    "client.erased": _n("Client erased"),
    "model.trained": _n("Model trained"),
    "model.off": _n("Model switched off"),
    "fingerprints.added": _n("Known pictures added"),
    "notification.tested": _n("Test message sent"),
    "follower.added": _n("Follower admitted"),
    "follower.removed": _n("Follower removed"),
    "proxy-user.changed": _n("Proxy user changed"),
    "proxy-user.removed": _n("Proxy user removed"),
    "change.undone": _n("Change taken back"),
    "client.added": _n("Device added"),
    "client.changed": _n("Device changed"),
    "client.removed": _n("Device removed"),
    "client.renamed": _n("Device renamed"),
    "group.added": _n("Group added"),
    "group.changed": _n("Group changed"),
    "group.removed": _n("Group removed"),
    "group.renamed": _n("Group renamed"),
    "policy.added": _n("Policy added"),
    "policy.changed": _n("Policy changed"),
    "policy.removed": _n("Policy removed"),
    "quota.added": _n("Time limit added"),
    "quota.changed": _n("Time limit changed"),
    "quota.removed": _n("Time limit removed"),
    "schedule.added": _n("Schedule added"),
    "schedule.changed": _n("Schedule changed"),
    "schedule.removed": _n("Schedule removed"),
    "extraction.added": _n("Extraction rule added"),
    "extraction.changed": _n("Extraction rule changed"),
    "extraction.removed": _n("Extraction rule removed"),
    "extraction.restored": _n("Extraction rule restored"),
    "ca.sealed": _n("Key of the certificate sealed"),
    "link.added": _n("Link made"),
    "link.revoked": _n("Link revoked"),
    "pause.started": _n("Pause started"),
    "pause.ended": _n("Pause ended"),
    "request.approved": _n("Request approved"),
    "request.denied": _n("Request denied"),
    "request.reopened": _n("Answer taken back"),
    "review.approved": _n("Page kept blocked"),
    "review.rejected": _n("Page allowed as harmless"),
    "review.changed": _n("Category of a page changed"),
    "review.undone": _n("Decision on a page taken back"),
    "review.redone": _n("Decision on a page made again"),
    "rule.enabled": _n("Rule switched on"),
    "rule.disabled": _n("Rule switched off"),
    "user.enabled": _n("Account enabled"),
    "user.unlinked": _n("Account unlinked from single sign-on"),
}
"""Names of audited actions by their codes."""
FAULTS: Final = (
    _n("Field required"),
    _n("Input should be a valid string"),
    _n("Input should be a valid integer, unable to parse string as an integer"),
    _n("Input should be a valid integer, got a number with a fractional part"),
    _n("Input should be a valid integer"),
    _n("Input should be a valid number, unable to parse string as a number"),
    _n("Input should be a valid number"),
    _n("Input should be a valid boolean, unable to interpret input"),
    _n("Input should be a valid boolean"),
    _n("Input should be a valid list"),
    _n("Input should be a valid dictionary or object to extract fields from"),
    _n("Input should be a valid dictionary"),
    _n("Input should be greater than or equal to %(limit)s"),
    _n("Input should be greater than %(limit)s"),
    _n("Input should be less than or equal to %(limit)s"),
    _n("Input should be less than %(limit)s"),
    _n("Input should be a finite number"),
    _n("String should have at most %(count)s character"),
    _n("String should have at most %(count)s characters"),
    _n("String should have at least %(count)s character"),
    _n("String should have at least %(count)s characters"),
    _n("String should match pattern '%(pattern)s'"),
    _n("List should have at most %(count)s items after validation, not %(number)s"),
    _n("List should have at most %(count)s items after validation, not more"),
    _n("List should have at least %(count)s item after validation, not %(number)s"),
    _n("Extra inputs are not permitted"),
    _n("JSON decode error"),
    _n("Input should be %(values)s"),
    _n("Value error, Expected UploadFile, received: %(detail)s"),
)
"""What is wrong with a field that was sent. Source: pydantic_core/src/errors/types.rs."""
DETAILS: Final = (
    _n("request %(number)s"), _n("request %(number)s: %(note)s"), _n("link %(number)s"), _n("role %(role)s"),
    _n("role %(role)s, given by the provider"), _n("role %(role)s, by single sign-on"), _n("name %(name)s"),
    _n("account %(account)s, scope %(scope)s"),
    _n("version %(number)s"), _n("was version %(number)s"), _n("%(count)s URLs"), _n("%(count)s bytes"),
    _n("%(count)s texts"), _n("%(done)s of %(count)s"), _n("task %(number)s"), _n("tasks %(numbers)s"),
    _n("task %(number)s: %(note)s"), _n("tasks %(numbers)s: %(note)s"), _n("on"), _n("off"), _n("%(number)s: %(code)s"),
)  # fmt: skip
"""What the program notes beside an audited action."""
_OF_PEOPLE: Final = frozenset({"words.added", "words.removed"})
"""Actions beside which only words of people are noted."""
_TASKS: Final = re.compile(r"task \d+(?:, task \d+)+")
_LONGEST: Final = 1_000
_FORMS: Final = {
    "count": r"[\d,]+", "number": r"\d+", "seconds": r"[\d.]+", "status": r"\d+", "port": r"\d+",
    "host": r"\S+", "address": r"\S+",
    "limit": r"[\d.eE+-]+",
    "scheme": r"\w+", "role": r"\w+", "scope": r"\w+", "code": r"[a-z-]+\.[a-z-]+", "done": r"\d+", "numbers": r"\d+(?:, \d+)+",
    "kind": r"[\w -]+", "key": r"[\w.-]+", "state": r"\w+",
}  # fmt: skip
_FAILURE_TEMPLATES: Final = sentence_templates(FAILURES, _FORMS)
_FAULT_TEMPLATES: Final = sentence_templates(FAULTS, _FORMS)
_TEMPLATES: Final = (
    *_FAILURE_TEMPLATES,
    *sentence_templates(PROBLEMS, _FORMS),
    *_FAULT_TEMPLATES,
    *sentence_templates(REFUSALS, _FORMS),
    *sentence_templates((*LIST_REFUSALS, *SETTING_REFUSALS), _FORMS),
    *sentence_templates(STATE_REFUSALS, _FORMS),
)
_DETAIL_TEMPLATES: Final = sentence_templates(DETAILS, _FORMS)
_ROLES: Final = {"viewer": _n("Viewer"), "approver": _n("Approver"), "admin": _n("Admin")}
_SCOPES: Final = {"read": _n("read"), "approve": _n("approve"), "admin": _n("Admin")}
_PLACE: Final = re.compile(r"([^\s:]{1,80}(?: [^\s:]{1,80})?): (.+)", re.DOTALL)
"""What a sentence is about, and the sentence: `fields.title: …`, `rules.txt: …`."""
_DEEPEST: Final = 3


class MessageTexts:
    """Writes sentences of the program in one language.

    Args:
        language: of the pages; English is not translated.
        translate: returns a message in the language.
    """

    def __init__(self, language: str, translate: Callable[[str], str]) -> None:
        self._english = language == "en"
        self._translate = translate

    def __call__(self, sentence: str) -> Told:
        """Returns a sentence as the page shows it."""
        if self._english or not sentence or len(sentence) > _LONGEST:
            return Told(sentence, is_english=True)
        found = self._faults(sentence) or self._said(sentence)
        return Told(sentence if found is None else found, is_english=found is None)

    def action(self, code: str) -> str:
        """Returns the name of an audited action; the code where it has none."""
        name = ACTIONS.get(code)
        return code if name is None else self._translate(name)

    def detail(self, text: str, action: str = "") -> str:
        """Returns what was noted beside an audited action in the language; words of people, names and addresses as they are."""
        if self._english or len(text) > _LONGEST or action in _OF_PEOPLE:
            return text
        shortened = _TASKS.sub(lambda found: f"tasks {found[0].replace('task ', '')}", text)
        return self._written(_DETAIL_TEMPLATES, shortened) or text

    def _written(self, templates: tuple[SentenceTemplate, ...], sentence: str) -> str | None:
        for template in templates:
            if (found := template.written(sentence, self._translate, self._value)) is not None:
                return found
        return None

    def _said(self, sentence: str, depth: int = 0) -> str | None:
        """Returns a sentence, or `PLACE: SENTENCE`, in the language; `None` where neither is known."""
        found = self._written(_TEMPLATES, sentence)
        if found is None and depth < _DEEPEST and (parts := _PLACE.fullmatch(sentence)) is not None:
            inner = self._said(parts[2], depth + 1)
            return None if inner is None else f"{parts[1]}: {inner}"
        return found

    def _faults(self, sentence: str) -> str | None:
        """Returns `FIELD: FAULT; FIELD: FAULT` in the language, `None` where it is no such list, or a fault is not known."""
        told: list[str] = []
        for piece in sentence.split("; "):
            field, _, fault = piece.partition(": ")
            found = self._written(_FAULT_TEMPLATES, fault) if fault else None
            if found is None:
                return None
            told.append(f"{field}: {found}")
        return "; ".join(told)

    def _value(self, name: str, text: str) -> str:
        if name in {"role", "scope"}:
            known = (_ROLES if name == "role" else _SCOPES).get(text)
            return text if known is None else self._translate(known)
        if name == "code":
            return self.action(text)
        if name != "why":
            return text
        return self._said(text, _DEEPEST) or self._said(text[:1].upper() + text[1:], _DEEPEST) or text
