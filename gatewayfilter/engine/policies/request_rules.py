"""Request rules: the values of policies that act on requests and responses, compiled for one client and instant."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from gatewayfilter.engine.policies.download_rules import DownloadRules
from gatewayfilter.engine.policies.search_sites import HostRules, SearchSite, host_rules
from gatewayfilter.engine.policies.search_terms import SearchTerms, decoded, searched_json, searched_texts, searched_values
from gatewayfilter.model import (
    FILE_GROUPS,
    NONE,
    Action,
    LogDetail,
    Policy,
    PolicyStrictness,
    Reason,
    Request,
    RequestChange,
    TlsHandling,
    Verdict,
    YouTubeMode,
    engines_of,
    expanded_types,
    megabytes_of,
    terms_of,
    types_of,
)
from gatewayfilter.urls import Url

_MEGABYTE = 1_000_000
_MEDIA = frozenset({"video", "audio"})

type Values = Mapping[str, tuple[str, str]]
"""Key → the value in force and the name of the policy that sets it."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """What acts on requests and responses.

    Attributes:
        hosts: host → what holds for requests to it. One look-up tells nearly all hosts apart.
        terms: what must not be searched for; `None` for nothing.
        terms_policy: name of the policy that sets it.
        downloads: what of responses is blocked; `None` for nothing.
        tls: the treatment of TLS connections; `tls_policy` sets it.
        blocks_doubt: pages that the classifier left in doubt are blocked.
        log_detail: what the log keeps; `None` for what `log.privacy` says.
    """

    hosts: Mapping[str, HostRules] = field(default_factory=dict)
    terms: SearchTerms | None = None
    terms_policy: str = ""
    downloads: DownloadRules | None = None
    tls: TlsHandling = TlsHandling.INTERCEPT
    tls_policy: str = ""
    blocks_doubt: bool = False
    log_detail: LogDetail | None = None

    def judge_search(self, url: Url) -> Verdict | None:
        """Returns the block of a request by what it searches for, `None` for none."""
        found = self.hosts.get(url.host)
        if found is None or found.searched is None or self.terms is None:
            return None
        term = self.terms.find_any(searched_texts(found.searched, url))
        return None if term == "" else self.search_block(term or "")

    def change_of(self, request: Request) -> RequestChange | None:
        """Returns what is changed in an allowed request, and what judges its body; `None` for nothing."""
        found = self.hosts.get(request.url.host)
        if found is None:
            return None
        form = None
        if request.method == "POST":
            parameters = found.enforced.parameters if found.enforced is not None else ()
            form = SearchForm(self, found.searched, request.url, parameters)
        return RequestChange(enforced=found.enforced, form=form)

    def search_block(self, term: str) -> Verdict:
        """Returns the block of a search for a term; `""` for one that cannot be read."""
        detail = f"search for {term}" if term else "the search cannot be read"
        return Verdict(Action.BLOCK, Reason.SEARCH_TERM, rule=self.terms_policy, detail=detail)


@dataclass(frozen=True, slots=True)
class SearchForm:
    """Judges what is posted to a search engine or video site (`model.JudgeForm`).

    Attributes:
        rules: of the client.
        site: whose searches are judged; `None` where none are.
        url: of the request.
        parameters: that replace all of the same name in a form.
    """

    rules: RequestRules
    site: SearchSite | None
    url: Url
    parameters: tuple[tuple[str, str], ...]

    @property
    def judges(self) -> bool:
        """Whether searches are judged."""
        return self.site is not None

    @property
    def is_search(self) -> bool:
        """Whether searches are posted to this URL as JSON."""
        site = self.site
        return site is not None and bool(site.json_path) and decoded(site, self.url.path).lower().startswith(site.json_path)

    def judge(self, body: bytes | None) -> Verdict | None:
        """Returns the block of a body by what it searches for, `None` for none; one that cannot be read is blocked."""
        site, terms = self.site, self.rules.terms
        if site is None or terms is None:
            return None
        if body is None:
            return self.rules.search_block("")
        if self.is_search:
            text = searched_json(site, body)
            if text is None:
                return self.rules.search_block("")
            texts = [text]
        else:
            texts = list(searched_values(site, body.decode("latin-1")))
        term = terms.find_any(texts)
        return None if term == "" else self.rules.search_block(term or "")


def first_values(layers: Iterable[Policy]) -> Values:
    """Returns the values that act on requests, each from the first policy that sets it."""
    found: dict[str, tuple[str, str]] = {}
    for policy in layers:
        for key, value in policy.requests.items():
            found.setdefault(key, (value, policy.name))
    return found


def request_rules(values: Values, *, paused: bool) -> RequestRules | None:
    """Returns the rules of values in canonical form, `None` where they change nothing.

    Args:
        values: in force.
        paused: filtering is paused: only the treatment of TLS and the log keep their values.
    """
    texts = {key: value for key, (value, _) in values.items()}
    rules = RequestRules(
        tls=TlsHandling(texts.get("tls", TlsHandling.INTERCEPT)),
        log_detail=LogDetail(texts["log-privacy"]) if "log-privacy" in texts else None,
    )
    if not paused:
        terms = terms_of(texts.get("search-terms", NONE))
        engines = engines_of(texts.get("safesearch", "off"))
        youtube = YouTubeMode(texts.get("youtube", YouTubeMode.OFF))
        rules = replace(
            rules,
            hosts=host_rules(engines, youtube, searched=bool(terms)),
            terms=_compiled(terms) if terms else None,
            terms_policy=values["search-terms"][1] if terms else "",
            downloads=_downloads(values),
            blocks_doubt=texts.get("strictness") == PolicyStrictness.STRICT,
        )
    if rules == RequestRules():
        return None
    return replace(rules, tls_policy=values["tls"][1]) if "tls" in values else rules


@lru_cache(maxsize=64)
def _compiled(terms: tuple[str, ...]) -> SearchTerms:
    return SearchTerms(terms)


def _downloads(values: Values) -> DownloadRules | None:
    names = types_of(values.get("file-types", (NONE, ""))[0])
    most = megabytes_of(values.get("max-download-mb", ("0", ""))[0])
    if not names and not most:
        return None
    policy = values["file-types"][1] if names else values["max-download-mb"][1]
    return DownloadRules(policy, expanded_types(names), names & _MEDIA & FILE_GROUPS.keys(), most * _MEGABYTE, names)
