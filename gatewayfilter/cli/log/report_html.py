"""The report as one HTML file: no script, no external resource, laid out for a screen, dark or light, and for print."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from gatewayfilter.cli.log.report_view import Bar, Section, bars_of, lists_of, sections_of, span_of, total_of
from gatewayfilter.cli.log.report_words import WORDS
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import printable

if TYPE_CHECKING:
    from gatewayfilter.use_cases.traffic.log_report import Report

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2026;--soft:#5b6470;--line:#d9dee4;--page:#fff;--bar:#9db7d5;--block:#c0392b}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa4b1;--line:#333a44;--page:#14171b;--bar:#41597a;--block:#e0695c}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:2rem 1.25rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,"Noto Sans","Noto Sans SC","Microsoft YaHei","PingFang SC",sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem}p{margin:.25rem 0}
.soft,footer{color:var(--soft)}footer{margin-top:2.5rem;font-size:.85rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;overflow-wrap:anywhere}
th,td{border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft)}td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
svg{width:100%;height:9rem;display:block}rect.a{fill:var(--bar)}rect.b{fill:var(--block)}
@page{margin:16mm}
@media print{:root{--ink:#000;--soft:#444;--line:#bbb;--page:#fff;--bar:#bbb;--block:#555}
body{padding:0;max-width:none;font-size:10pt}
section{break-inside:avoid}thead{display:table-header-group}tr{break-inside:avoid}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
_HEIGHT: Final = 100
_WIDTH: Final = 10


def html_of(report: Report, language: str) -> str:
    """Returns the file's text; every text of the log is escaped."""
    words = WORDS[language]
    title = _text(f"{words['title']}: {span_of(report, language)}")
    parts = [
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">""",
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<header><h1>{_text(words['title'])}</h1><p class=soft>{_text(span_of(report, language))}</p></header>",
        f"<p>{_text(total_of(report, language))}</p><p>{_text(lists_of(report, language))}</p>",
        _chart(bars_of(report), words["hours"], words),
        *(_table(section, words["none"]) for section in sections_of(report, language)),
        f"<footer>{_text(words['made'].format(when=show_day(report.made_at)))}</footer></body></html>\n",
    ]
    return "\n".join(parts)


def _chart(bars: list[Bar], title: str, words: dict[str, str]) -> str:
    if not bars:
        return ""
    most = max(bar.decisions for bar in bars)
    shapes = []
    for place, bar in enumerate(bars):
        label = _text(f"{bar.label}: {bar.decisions:,} {words['decisions']}, {bar.blocked:,} {words['blocked']}")
        every, blocked = (max(round(count / most * _HEIGHT, 1), 0.5 if count else 0) for count in (bar.decisions, bar.blocked))
        x = place * _WIDTH + 1
        shapes.append(
            f'<g><title>{label}</title><rect class="a" x="{x}" y="{_HEIGHT - every}" width="{_WIDTH - 2}" height="{every}"/>'
            f'<rect class="b" x="{x}" y="{_HEIGHT - blocked}" width="{_WIDTH - 2}" height="{blocked}"/></g>'
        )
    return (
        f"<section><h2>{_text(title)}</h2>"
        f'<svg viewBox="0 0 {len(bars) * _WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{_text(title)}">'
        f'{"".join(shapes)}</svg><p class="soft">{_text(bars[0].label)} – {_text(bars[-1].label)}, ≤ {most:,}</p></section>'  # noqa: RUF001
    )


def _table(section: Section, none: str) -> str:
    head = f"<section><h2>{_text(section.title)}</h2>"
    if not section.rows:
        return f"{head}<p class=soft>{_text(none)}</p></section>"
    numbers = [all(row[column].replace(",", "").isdigit() for row in section.rows) for column in range(len(section.columns))]
    marks = [' class="n"' if number else "" for number in numbers]
    columns = "".join(f"<th{mark}>{_text(name)}</th>" for mark, name in zip(marks, section.columns, strict=True))
    rows = "".join(
        f"<tr>{''.join(f'<td{mark}>{_text(cell)}</td>' for mark, cell in zip(marks, row, strict=True))}</tr>"
        for row in section.rows
    )
    return f"{head}<table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></section>"


def _text(text: str) -> str:
    return escape(printable(text.replace("\n", " ")))
