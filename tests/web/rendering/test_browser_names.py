"""Names of browsers."""

import pytest

from gatewayfilter.web.rendering.browser_names import BrowserName, browser_name

_KIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("agent", "name", "system"),
    [
        (f"Mozilla/5.0 (X11; Linux x86_64) {_KIT} Chrome/156.0.0.0 Safari/537.36", "Chrome", "Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_KIT} Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0", "Edge", "Windows"),
        (
            f"Mozilla/5.0 (Linux; Android 10; K) {_KIT} SamsungBrowser/27.0 Chrome/125.0 Safari/537.36",
            "Samsung Internet",
            "Android",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.4 Safari/605.1.15", "Safari", "macOS"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) AppleWebKit/605.1.15 FxiOS/140.0 Safari/605",
            "Firefox",
            "iPhone",
        ),
        ("Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox", "Linux"),
        ("curl/8.14.1", "curl/8.14.1", ""),
        ("", "", ""),
        ("<script>" * 50, ("<script>" * 50)[:60], ""),
    ],
)
def test_names(agent: str, name: str, system: str) -> None:
    assert browser_name(agent) == BrowserName(name, system)
