"""`make demo`: the filter, a small local site and a client, with no internet; prints what happened at each station.

Exits with 1 when a station did not answer as it should, so that it also serves as a check.
"""

import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from site_pages import DemoSite

START_S = 30
LEARN_S = 10


class DemoError(Exception):
    """A station did not answer as it should."""


class Gateway:
    """`gatewayfilter run` on a state folder of its own, and the commands that a person would type beside it."""

    def __init__(self, folder: Path, site: DemoSite) -> None:
        self.state = folder / "state"
        self._environment = {
            **os.environ,
            "GATEWAYFILTER_DATA_DIR": str(self.state),
            "GATEWAYFILTER_PROXY__LISTEN": "127.0.0.1:0",
            "GATEWAYFILTER_WEB__LISTEN": "",
            "GATEWAYFILTER_PROXY__UPSTREAM_CA": str(site.authority),
            "GATEWAYFILTER_CRAWL__UPSTREAM_CA": str(site.authority),
            "GATEWAYFILTER_CRAWL__ALLOW_NETWORKS": "127.0.0.0/8",
            "GATEWAYFILTER_LOG__LEVEL": "warning",
        }
        self._command = str(Path(sys.executable).with_name("gatewayfilter"))
        self._process = subprocess.Popen([self._command, "run"], env=self._environment, stdout=subprocess.PIPE, text=True)
        self.address = self._wait_until_ready()

    def _wait_until_ready(self) -> str:
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            line = self._process.stdout.readline() or ""
            if "is filtering on" in line:
                return line.partition("is filtering on ")[2].split()[0]
            time.sleep(0.02)
        raise DemoError("the filter did not start")

    def command(self, *arguments: str) -> Any:
        """Runs a command with --json and returns what it printed."""
        done = subprocess.run(
            [self._command, *arguments, "--json"], env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode not in {0, 1}:
            raise DemoError(f"gatewayfilter {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def stop(self) -> None:
        """Ends the filter."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Browser:
    """A client that uses the gateway as its proxy and trusts its certificate authority."""

    def __init__(self, gateway: Gateway) -> None:
        proxy = f"http://{gateway.address}"
        context = ssl.create_default_context(cafile=str(gateway.state / "ca" / "mitmproxy-ca-cert.pem"))
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": proxy, "https": proxy}), urllib.request.HTTPSHandler(context=context)
        )

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> tuple[int, Mapping[str, str], str]:
        """Returns status, headers and text."""
        request = urllib.request.Request(url, headers={"User-Agent": "Demo-browser/1", **(headers or {})})
        try:
            with self._opener.open(request, timeout=20) as response:
                return response.status, response.headers, response.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read().decode(errors="replace")


class Story:
    """Prints the stations, numbered, and checks what they say."""

    def __init__(self, gateway: Gateway, browser: Browser, site: DemoSite) -> None:
        self._gateway = gateway
        self._browser = browser
        self._site = site
        self._number = 0
        self._seen = 0

    def chapter(self, title: str) -> None:
        """Begins a chapter."""
        self._number += 1
        print(f"\n{self._number}. {title}")

    def say(self, station: str, text: str) -> None:
        """Prints one station's answer."""
        print(f"   {station:<11}{text}")

    def visit(self, url: str, expected: int, headers: Mapping[str, str] | None = None) -> tuple[Mapping[str, str], str]:
        """Visits a URL through the gateway and shows the answer and the logged decision."""
        began = time.monotonic()
        status, answer, text = self._browser.get(url, headers)
        self.say("client", f"GET {url} -> {status} in {(time.monotonic() - began) * 1000:.0f} ms")
        if status != expected:
            raise DemoError(f"{url} answered {status}, not {expected}")
        record = self._logged(url)
        by = f", {record['source_list']}: {record['rule']}" if record["source_list"] else ""
        self.say("decision", f"{record['action']}, {record['reason']}{by} ({record['elapsed_us']} µs)")
        return answer, text

    def _logged(self, url: str) -> dict[str, Any]:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            newest = self._gateway.command("log", "tail", "-n", "1")
            if newest and newest["url"] == url and newest["id"] > self._seen:
                self._seen = newest["id"]
                return dict(newest)
        raise DemoError(f"the log has no decision for {url}")

    def until_learned(self, url: str, reason: str) -> dict[str, Any]:
        """Waits until the learner's verdict is in effect and shows the evidence."""
        began = time.monotonic()
        while time.monotonic() - began < LEARN_S:
            answer = self._gateway.command("check", url)
            if answer["verdict"]["reason"] == reason:
                break
        else:
            raise DemoError(f"nothing was learned of {url} within {LEARN_S} s")
        judged = answer["classification"]["classification"]
        words = ", ".join(list(dict.fromkeys(hit["word"] for hit in judged["evidence"]))[:8]) or "none"
        fetches = self._site.fetches["/" + url.rpartition("/")[2], "GatewayFilter"]
        if fetches:
            times = f"{fetches} time{'s' if fetches != 1 else ''}"
            self.say("crawler", f"fetched it {times}, on its own, without the client's cookies")
        else:
            self.say("learner", "judged the page as it passed the proxy, without a fetch")
        self.say(
            "classifier",
            f"{judged['category'] or 'harmless'}: score {judged['score']:.1f}, limit {judged['limit']:.1f}; words: {words}",
        )
        self.say("lists", f"{answer['verdict']['source_list']} holds it now; every worker follows")
        return dict(answer)


def tell(gateway: Gateway, site: DemoSite) -> None:
    """Runs all chapters.

    Raises:
        DemoError: a station did not answer as it should.
    """
    browser = Browser(gateway)
    story = Story(gateway, browser, site)

    story.chapter("A harmless page that no list knows: allowed at once, then looked at")
    story.visit(f"{site.http}/garden", 200)
    story.until_learned(f"{site.http}/garden", "whitelist")
    story.visit(f"{site.http}/garden", 200)

    story.chapter("A name on a bundled list: blocked before anything is fetched")
    story.visit("http://blocked.gatewayfilter.test/", 403)

    story.chapter("A page that carries an advertisement: the page comes, the advertisement does not")
    gateway.command("source", "add", str(_advertising_rules(gateway.state.parent)), "--name", "demo-ads", "--category", "ads")
    story.say("lists", "added the Adblock list demo-ads; the workers swapped their snapshot while serving")
    _wait_for_swap(gateway, f"{site.http}/ads/banner.js", f"{site.http}/news")
    story.visit(f"{site.http}/news", 200)
    headers = {"Referer": f"{site.http}/news", "Sec-Fetch-Dest": "script"}
    _, text = story.visit(f"{site.http}/ads/banner.js", 200, headers)
    if text or site.fetches["/ads/banner.js", "Demo-browser"]:
        raise DemoError("the advertisement was delivered")
    story.say("client", "got an empty script; the site was never asked for it")

    for title, url in (
        ("A gambling page that no list knows: the first visit passes, the second does not", f"{site.http}/lucky-palace"),
        ("The same in Chinese and over https", f"{site.https}/zh-casino"),
    ):
        story.chapter(title)
        story.visit(url, 200)
        story.until_learned(url, "learned")
        _, page = story.visit(url, 403)
        if "score" not in page:
            raise DemoError("the block page does not name the evidence")

    story.chapter("The person who runs the filter has the last word")
    url = f"{site.http}/lucky-palace"
    gateway.command("list", "add", "--allow", url)
    story.say("command", f"gatewayfilter list add --allow {url}")
    time.sleep(0.5)
    story.visit(url, 200)

    story.chapter("What `gatewayfilter check` says of it: every decider, in order")
    for answer in gateway.command("check", url)["answers"]:
        story.say(answer["decider"], f"{answer['answer']:<8} {answer['explanation']}")


def _advertising_rules(folder: Path) -> Path:
    rules = folder / "demo-ads.txt"
    rules.write_text("[Adblock Plus 2.0]\n! Title: demo\n/ads/banner.js$script\n")
    return rules


def _wait_for_swap(gateway: Gateway, url: str, source: str) -> None:
    deadline = time.monotonic() + LEARN_S
    while time.monotonic() < deadline:
        published = max(path.stat().st_mtime for path in (gateway.state / "snapshots").iterdir())
        statuses = [json.loads(path.read_text()) for path in (gateway.state / "run").glob("proxy-*.json")]
        if statuses and all(status["at"] > published + 1.5 for status in statuses):
            break
        time.sleep(0.1)
    if gateway.command("check", url, "--source", source, "--type", "script")["verdict"]["action"] != "block":
        raise DemoError("the new list is not in effect")


def main() -> int:
    """Runs the demo in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="gatewayfilter-demo-") as name:
        folder = Path(name)
        with DemoSite(folder / "site") as site:
            print(f"A small site listens on {site.http} and {site.https}.")
            gateway = Gateway(folder, site)
            try:
                print(f"The filter listens on {gateway.address}; its state is in a temporary folder.")
                tell(gateway, site)
            except DemoError as error:
                print(f"\nThe demo failed: {error}", file=sys.stderr)
                return 1
            finally:
                gateway.stop()
    print("\nThat was the whole way: decision, first visit, crawler, classifier, lists, and a person's word over all of it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
