"""The sentences of the block and error pages, in English and simplified Chinese."""
# ruff: noqa: RUF001  Chinese sentences have full-width commas

from collections.abc import Mapping
from dataclasses import dataclass

from gatewayfilter.model import Reason, evidence_in_chinese
from gatewayfilter.proxy.pages.upstream_errors import Fault


@dataclass(frozen=True, slots=True)
class PageTexts:
    """All texts of one language.

    Attributes:
        language: for the `lang` attribute.
        titles: headline by reason; `""` stands for every other reason.
        why: the explanation by reason.
        of_category: the explanation by reason of a block whose category is known, which it names.
        faults: headline and explanation of an error page.
        labels: what the facts are called: `url`, `category`, `list`, `rule`, `evidence`, `says` (an error's own words);
            and the labels of the form, links and states of requests to unblock pages.
        notices: headline and explanation of what became of such a request.
        how: stands above the command that allows the page.
    """

    language: str
    titles: Mapping[str, str]
    why: Mapping[str, str]
    of_category: Mapping[str, str]
    faults: Mapping[Fault, tuple[str, str]]
    labels: Mapping[str, str]
    notices: Mapping[str, tuple[str, str]]
    how: str

    def title(self, reason: Reason) -> str:
        """Returns the headline."""
        return self.titles.get(reason, self.titles[""])

    def explanation(self, reason: Reason, category: str, title: str) -> str:
        """Returns the explanation of a block.

        Args:
            reason: of the verdict.
            category: of the verdict, `""` for none.
            title: its name in this language.
        """
        if reason is Reason.ADBLOCK and category in _ADVERTISING:
            return self.why.get(reason, "")
        sentence = self.of_category.get(reason, "") if category and category != "other" else ""
        return sentence.format(category=title) if sentence else self.why.get(_PLAIN.get(reason, reason), "")

    def evidence(self, detail: str) -> str:
        """Returns the evidence of a verdict, with the level of certainty in this language."""
        return evidence_in_chinese(detail) if self.language == CHINESE.language else detail


_ADVERTISING = frozenset({"ads", "trackers"})
_PLAIN = {Reason.ADBLOCK: Reason.BLACKLIST}
"""Reasons that have the explanation of another one where no category is known."""

_INTERNAL_EN = (
    "It leads to the machine of the filter or into an internal network, where this device may not go through the filter. If it "
    "should, the person who runs the filter can open that network: proxy.allow_networks."
)
_INTERNAL_ZH = (
    "它指向过滤器所在的机器或内部网络，此设备不能经由过滤器访问。"
    "如确有需要，请过滤器的管理员在 proxy.allow_networks 中开放该网段。"
)

ENGLISH = PageTexts(
    language="en",
    titles={
        "": "This page is blocked",
        Reason.UNKNOWN: "This page is not known yet",
        Reason.BAD_REQUEST: "This request cannot be understood",
        Reason.NOT_HTTP: "This connection cannot be read",
        Reason.FAILURE: "The filter could not check this page",
        Reason.LOGIN_REFUSED: "The proxy requires a log-in",
        Reason.INTERNAL_ADDRESS: "This address is internal",
    },
    why={
        Reason.MANUAL_BLOCK: "Somebody who runs this filter put it on the block list.",
        Reason.BLACKLIST: "This site is on a blocklist.",
        Reason.LEARNED: "The filter looked at this page and found harmful content.",
        Reason.ADBLOCK: "A rule against advertising and tracking matches it.",
        Reason.SCHEDULE: "A schedule blocks it at this time.",
        Reason.POLICY: "Everything is blocked on this device.",
        Reason.SAFESEARCH: "The results of this site can only be filtered where the connection can be read.",
        Reason.SEARCH_TERM: "It was searched for something that is not allowed on this device.",
        Reason.FILE_TYPE: "Files of this type are not allowed on this device.",
        Reason.FILE_SIZE: "The file is larger than this device may download.",
        Reason.SERVICE: "This service is blocked on this device.",
        Reason.QUOTA: "The minutes for it are used up. The evidence below names when there are new ones.",
        Reason.UNKNOWN: "No list knows it. It is being looked at; try again in a few seconds.",
        Reason.BAD_REQUEST: "Its address or its Host header is not valid, so the request was not passed on.",
        Reason.LOGIN_REFUSED: "The user name or the password is wrong.",
        Reason.INTERNAL_ADDRESS: _INTERNAL_EN,
        Reason.NOT_HTTP: "It speaks neither HTTP nor TLS, so the filter cannot see what passes in it. It was closed.",
        Reason.FAILURE: "An error inside the filter kept it from deciding, and it is set to block in that case. Try again later.",
    },
    of_category={
        Reason.BLACKLIST: "This site is on a blocklist ({category}).",
        Reason.ADBLOCK: "This site is on a blocklist ({category}).",
        Reason.LEARNED: "The filter looked at this page and found harmful content ({category}).",
        Reason.SCHEDULE: "A schedule blocks it at this time ({category}).",
    },
    faults={
        Fault.BAD_REQUEST: ("This request cannot be understood", "It is not valid HTTP, so it was not passed on."),
        Fault.HEADERS_TOO_LARGE: ("This request is too large", "Its headers are larger than the filter reads."),
        Fault.VERSION: ("This version of HTTP is not supported", "The filter takes HTTP/1.0, HTTP/1.1 and HTTP/2."),
        Fault.NAME: ("This site was not found", "No address is known for its name. Is it spelt right, and does DNS work?"),
        Fault.REFUSED: ("This site does not answer", "Its server refuses the connection."),
        Fault.UNREACHABLE: ("This site cannot be reached", "There is no way from the filter to its server."),
        Fault.TIMEOUT: ("This site does not answer", "Its server did not answer in time. Try again later."),
        Fault.CERTIFICATE: (
            "This site cannot prove that it is genuine",
            "Its certificate is not valid, so somebody may read or change what it sends. Nothing was asked of it.",
        ),
        Fault.TLS: ("No secure connection to this site", "The filter and its server could not agree on an encrypted connection."),
        Fault.BAD_ANSWER: (
            "This site's answer cannot be understood",
            "Its server closed the connection or sent something else than HTTP.",
        ),
        Fault.INTERNAL_ADDRESS: ("This address is internal", _INTERNAL_EN),
    },
    labels={
        "url": "Address",
        "category": "Category",
        "list": "List",
        "rule": "Rule",
        "evidence": "Evidence",
        "says": "Details",
        "ask": "Ask to unblock",
        "hint": "Why? (optional)",
        "back": "Go back",
        "open": "Open the page now",
        "see": "Show my request",
        "until": "Until",
        "answer": "Answer",
        "note": "Your note",
        "asked-at": "Asked",
        "learned": "learned by the filter",
        "state-waiting": "You asked to unblock this page. The request is waiting for an answer.",
        "state-approved": "Your request was approved.",
        "state-denied": "Your request was denied.",
        "state-ended": "Your request was approved; the approval has ended.",
    },
    notices={
        "asked": ("Your request was noted", "The person who runs the filter will see it. The page stays blocked until then."),
        "waiting": ("Your request was noted", "It is waiting for the person who runs the filter. The answer will appear here."),
        "approved": ("Your request was approved", "You can open the page now."),
        "approved-ended": ("The approval has ended", "The page is blocked again. You can ask once more on its block page."),
        "denied": ("Your request was denied", "The page stays blocked."),
        "no-request": ("There is no request for this page", "Go back to the blocked page and use its button."),
        "too-many-open": ("You have asked for many pages", "Wait until some of your requests are answered."),
        "too-many-today": ("You have asked for many pages today", "Try again tomorrow."),
        "requests-off": ("Requests are switched off", "This device cannot ask to unblock pages."),
        "link-opening": ("The page is being unblocked", "This takes a second."),
        "link-invalid": ("This link does not work", "It is damaged, or not from this filter. Ask for another one."),
        "link-other": ("This link is for another device", "It works only on the device that it was made for."),
        "link-revoked": ("This link was withdrawn", "Ask for another one."),
        "link-expired": ("This link has expired", "Ask for another one."),
        "link-used": ("This link was used already", "It works once. Ask for another one."),
        "ask-again": ("This request cannot be taken", "Go back to the blocked page and use its button."),
        "ask-later": ("This request cannot be taken now", "Too many are waiting. Try again in a minute."),
        "not-blocked": ("This page is not blocked any more", "Go back and load it again."),
    },
    how="If this is a mistake, the person who runs the filter can allow it with",
)

CHINESE = PageTexts(
    language="zh-Hans",
    titles={
        "": "此页面已被拦截",
        Reason.UNKNOWN: "此页面尚未识别",
        Reason.BAD_REQUEST: "无法理解此请求",
        Reason.NOT_HTTP: "无法读取此连接",
        Reason.FAILURE: "过滤器无法检查此页面",
        Reason.LOGIN_REFUSED: "代理需要登录",
        Reason.INTERNAL_ADDRESS: "这是一个内部地址",
    },
    why={
        Reason.MANUAL_BLOCK: "过滤器的管理员已将其列入拦截名单。",
        Reason.BLACKLIST: "此网站在拦截名单上。",
        Reason.LEARNED: "过滤器检查了此页面，发现有害内容。",
        Reason.ADBLOCK: "它符合一条广告或跟踪拦截规则。",
        Reason.SCHEDULE: "按照时间安排，现在不能访问。",
        Reason.POLICY: "此设备目前不能访问任何网站。",
        Reason.SAFESEARCH: "只有在能够读取连接时，才能过滤此网站的结果。",
        Reason.SEARCH_TERM: "搜索的内容在此设备上不允许。",
        Reason.FILE_TYPE: "此设备不允许下载这种类型的文件。",
        Reason.FILE_SIZE: "文件大小超过了此设备允许下载的上限。",
        Reason.SERVICE: "此设备不能使用该服务。",
        Reason.QUOTA: "今天的使用时间已用完，恢复时间见下方的依据。",
        Reason.UNKNOWN: "没有任何名单收录它。系统正在检查，请几秒后重试。",
        Reason.BAD_REQUEST: "其地址或 Host 头无效，请求未被转发。",
        Reason.LOGIN_REFUSED: "用户名或密码不正确。",
        Reason.INTERNAL_ADDRESS: _INTERNAL_ZH,
        Reason.NOT_HTTP: "此连接既不是 HTTP 也不是 TLS，过滤器看不到其中的内容，因此已将其关闭。",
        Reason.FAILURE: "过滤器内部出错，无法作出判断，并被设置为在此情况下拦截。请稍后再试。",
    },
    of_category={
        Reason.BLACKLIST: "此网站在拦截名单上（{category}）。",
        Reason.ADBLOCK: "此网站在拦截名单上（{category}）。",
        Reason.LEARNED: "过滤器检查了此页面，发现有害内容（{category}）。",
        Reason.SCHEDULE: "按照时间安排，现在不能访问（{category}）。",
    },
    faults={
        Fault.BAD_REQUEST: ("无法理解此请求", "它不是有效的 HTTP，因此未被转发。"),
        Fault.HEADERS_TOO_LARGE: ("此请求过大", "其请求头超过了过滤器的读取上限。"),
        Fault.VERSION: ("不支持此 HTTP 版本", "过滤器只接受 HTTP/1.0、HTTP/1.1 和 HTTP/2。"),
        Fault.NAME: ("找不到此网站", "查不到该名称对应的地址。请检查拼写是否正确，DNS 是否正常。"),
        Fault.REFUSED: ("此网站没有响应", "其服务器拒绝连接。"),
        Fault.UNREACHABLE: ("无法到达此网站", "过滤器没有通往其服务器的路径。"),
        Fault.TIMEOUT: ("此网站没有响应", "其服务器未在规定时间内响应。请稍后再试。"),
        Fault.CERTIFICATE: (
            "此网站无法证明其真实身份",
            "其证书无效，可能有人正在读取或篡改它发送的内容。过滤器没有建立连接，也没有发送任何数据，此处无法继续访问。",
        ),
        Fault.TLS: ("无法与此网站建立安全连接", "过滤器与其服务器未能就加密连接达成一致。"),
        Fault.BAD_ANSWER: ("无法理解此网站的响应", "其服务器关闭了连接，或发送了非 HTTP 的内容。"),
        Fault.INTERNAL_ADDRESS: ("这是一个内部地址", _INTERNAL_ZH),
    },
    labels={
        "url": "地址",
        "category": "类别",
        "list": "名单",
        "rule": "规则",
        "evidence": "依据",
        "says": "详情",
        "ask": "申请访问此页面",
        "hint": "原因（可不填）",
        "back": "返回",
        "open": "现在打开页面",
        "see": "查看我的申请",
        "until": "有效期至",
        "answer": "答复",
        "note": "您的说明",
        "asked-at": "申请时间",
        "learned": "过滤器自行识别",
        "state-waiting": "您已申请访问此页面，正在等待答复。",
        "state-approved": "您的申请已获批准。",
        "state-denied": "您的申请未获批准。",
        "state-ended": "您的申请曾获批准，现已到期。",
    },
    notices={
        "asked": ("您的申请已记录", "过滤器的管理员会看到它。在此之前，该页面仍被拦截。"),
        "waiting": ("您的申请已记录", "正在等待过滤器管理员的答复，结果会显示在这里。"),
        "approved": ("您的申请已获批准", "现在可以打开该页面。"),
        "approved-ended": ("批准已到期", "该页面再次被拦截。您可以在拦截页面上重新申请。"),
        "denied": ("您的申请未获批准", "该页面仍被拦截。"),
        "no-request": ("没有针对此页面的申请", "请返回被拦截的页面，使用其中的按钮。"),
        "too-many-open": ("您的待处理申请过多", "请等待部分申请得到答复。"),
        "too-many-today": ("您今天的申请过多", "请明天再试。"),
        "requests-off": ("申请功能已关闭", "此设备不能申请访问页面。"),
        "link-opening": ("正在放行该页面", "请稍候片刻。"),
        "link-invalid": ("此链接无效", "链接已损坏，或不是由此过滤器生成。请索取新的链接。"),
        "link-other": ("此链接属于另一台设备", "它只能在指定的设备上使用。"),
        "link-revoked": ("此链接已被撤销", "请索取新的链接。"),
        "link-expired": ("此链接已过期", "请索取新的链接。"),
        "link-used": ("此链接已使用过", "它只能使用一次。请索取新的链接。"),
        "ask-again": ("无法受理此申请", "请返回被拦截的页面，使用其中的按钮。"),
        "ask-later": ("暂时无法受理此申请", "等待处理的申请过多，请一分钟后重试。"),
        "not-blocked": ("此页面已不再被拦截", "请返回并重新加载。"),
    },
    how="如果这是误判，过滤器的管理员可以用以下命令放行：",
)


def choose_texts(accept_language: str) -> PageTexts:
    """Returns the texts that an Accept-Language header (RFC 9110 §12.5.4) likes best; English when it likes neither."""
    best, best_quality = ENGLISH, 0.0
    for part in accept_language[:500].split(","):
        tag, _, parameters = part.strip().partition(";")
        texts = {"zh": CHINESE, "en": ENGLISH}.get(tag.strip().lower().partition("-")[0])
        quality = _quality(parameters)
        if texts is not None and quality > best_quality:
            best, best_quality = texts, quality
    return best


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
