"""A headless Chromium that a test steers through its DevTools pipe."""

import asyncio
import itertools
import json
import os
import shutil
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

BINARY = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
START_S = 60
ANSWER_S = 60


class Tab:
    """One page. `messages` is what it said on the console, exceptions and failed loads included."""

    def __init__(self, browser: "Chromium", session: str) -> None:
        self._browser = browser
        self._session = session
        self.loaded = asyncio.Event()
        self.messages: list[str] = []
        self._finished: set[str] = set()
        self._finishes = asyncio.Event()

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return await self._browser.call(method, self._session, **parameters)

    async def go(self, url: str) -> None:
        """Opens an address and waits until everything is loaded: of this page, not of the one that the tab began with."""
        document = (await self.call("Page.navigate", url=url))["loaderId"]
        async with asyncio.timeout(ANSWER_S):
            while document not in self._finished:
                self._finishes.clear()
                await self._finishes.wait()

    async def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression, awaited."""
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    async def screenshot(self, path: Path) -> None:
        """Writes a PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(b64decode(answer["data"]))  # noqa: ASYNC240  a test's own file

    def event(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self.loaded.set()
        elif method == "Page.lifecycleEvent" and parameters["name"] == "load":
            self._finished.add(parameters["loaderId"])
            self._finishes.set()
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.messages.append(f"exception: {details.get('exception', {}).get('description', details['text'])}")
        elif method == "Log.entryAdded":
            entry = parameters["entry"]
            self.messages.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")


class Chromium:
    """A running browser."""

    def __init__(self, reader: asyncio.StreamReader, writer: Any) -> None:
        self._reader = reader
        self._write = writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}

    async def call(self, method: str, session: str = "", **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._write(json.dumps(message).encode() + b"\0")
        async with asyncio.timeout(ANSWER_S):
            found: dict[str, Any] = await answer
            return found

    async def tab(self, **headers: str) -> Tab:
        target = await self.call("Target.createTarget", url="about:blank", newWindow=True, width=1000, height=760)
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        tab = self._tabs[attached["sessionId"]] = Tab(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            await tab.call(f"{domain}.enable")
        await tab.call("Page.setLifecycleEventsEnabled", enabled=True)
        if headers:
            await tab.call(
                "Network.setExtraHTTPHeaders", headers={name.replace("_", "-"): text for name, text in headers.items()}
            )
        return tab

    async def read(self) -> None:
        """Hands answers and events on until the browser ends."""
        with suppress(asyncio.IncompleteReadError):
            while True:
                message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                if "id" in message:
                    answer = self._waiting.pop(message["id"])
                    if "error" in message:
                        answer.set_exception(AssertionError(message["error"]))
                    elif not answer.done():
                        answer.set_result(message["result"])
                elif (tab := self._tabs.get(message.get("sessionId", ""))) is not None:
                    tab.event(message["method"], message["params"])


@asynccontextmanager
async def chromium(profile: Path, proxy: str, trusted_key: str) -> AsyncIterator[Chromium]:
    """Starts a browser.

    Args:
        profile: an empty folder.
        proxy: `http://HOST:PORT`.
        trusted_key: base64 SHA-256 of the public key of an authority to trust.
    """
    assert BINARY is not None
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()
    flags = (
        "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --autoplay-policy=no-user-gesture-required --remote-debugging-pipe "
        f"--user-data-dir={profile} --proxy-server={proxy} --proxy-bypass-list=<-loopback> "
        f"--ignore-certificate-errors-spki-list={trusted_key}"
    ).split()
    redirect = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", redirect, "bash", BINARY, *flags, "about:blank",
        pass_fds=(to_browser, from_browser), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        env={"HOME": str(profile), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
    )  # fmt: skip
    os.close(to_browser)
    os.close(from_browser)
    reader = asyncio.StreamReader(limit=64 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(to_us, "rb"))
    browser = Chromium(reader, lambda data: os.write(from_us, data))
    task = asyncio.get_running_loop().create_task(browser.read())
    try:
        yield browser
        with suppress(TimeoutError):
            await browser.call("Browser.close")
    finally:
        os.close(from_us)
        try:
            await asyncio.wait_for(process.wait(), 15)
        except TimeoutError:
            process.kill()
            await process.wait()
        await task
