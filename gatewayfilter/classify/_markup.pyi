from typing import Literal, overload

from gatewayfilter.classify.html_text import HtmlText
from gatewayfilter.classify.references import References

@overload
def read(html: str, *, texts: Literal[True], references: Literal[True]) -> tuple[HtmlText, References]: ...
@overload
def read(html: str, *, texts: Literal[True], references: Literal[False]) -> tuple[HtmlText, None]: ...
@overload
def read(html: str, *, texts: Literal[False], references: Literal[True]) -> tuple[None, References]: ...
