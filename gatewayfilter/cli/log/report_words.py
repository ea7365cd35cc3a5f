"""The words of the report, in English and Chinese."""

# ruff: noqa: RUF001  Chinese punctuation

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, dict[str, str]]] = {
    "en": {
        "title": "Filter report",
        "span": "{since} to {until}",
        "total": "{decisions} requests, {blocked} of them blocked ({percent} %).",
        "hours": "Requests over time",
        "who": "By client",
        "hosts": "Blocked sites",
        "categories": "Blocked by category",
        "sources": "Blocked by list",
        "reasons": "Reasons of blocks",
        "devices": "New devices",
        "requests": "Open requests to unblock",
        "learned": "Pages that were learned to be harmful: {count}",
        "lists": "{count} lists are subscribed; all of their last updates succeeded.",
        "failing": "{count} lists are subscribed; the last update of these failed: {names}.",
        "no_lists": "No lists are subscribed.",
        "name": "name",
        "decisions": "requests",
        "blocked": "blocked",
        "since": "since",
        "page": "page",
        "category": "category",
        "client": "client",
        "comment": "comment",
        "none": "None.",
        "others": "(others)",
        "uncounted": "{count} newer requests are not counted yet.",
        "made": "Made {when} by GatewayFilter. Requests are counted in whole hours.",
    },
    "zh": {
        "title": "过滤报告",
        "span": "{since} 至 {until}",
        "total": "共 {decisions} 次请求，其中 {blocked} 次被拦截（{percent} %）。",
        "hours": "请求的时间分布",
        "who": "按客户端",
        "hosts": "被拦截的网站",
        "categories": "按类别统计的拦截",
        "sources": "按名单统计的拦截",
        "reasons": "拦截原因",
        "devices": "新设备",
        "requests": "待处理的解除拦截申请",
        "learned": "新学到的有害页面：{count} 个",
        "lists": "已订阅 {count} 份名单，最近一次更新全部成功。",
        "failing": "已订阅 {count} 份名单，其中最近一次更新失败的有：{names}。",
        "no_lists": "尚未订阅任何名单。",
        "name": "名称",
        "decisions": "请求",
        "blocked": "拦截",
        "since": "首次出现",
        "page": "页面",
        "category": "类别",
        "client": "客户端",
        "comment": "留言",
        "none": "无。",
        "others": "（其他）",
        "uncounted": "另有 {count} 次较新的请求尚未计入。",
        "made": "由 GatewayFilter 于 {when} 生成。请求按整点小时统计。",
    },
}
"""Language → key → text with places for values."""
