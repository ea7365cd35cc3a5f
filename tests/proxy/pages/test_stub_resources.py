"""Stub resources: each name that a rule can ask for has one, and it is what it says."""

import json
import shutil
import subprocess
from xml.etree import ElementTree as ET

import pytest

from gatewayfilter.engine.adblock.syntax.stub_names import STUB_NAMES
from gatewayfilter.model import Action, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.pages.stub_resources import stub_response
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

NAMES = sorted(set(STUB_NAMES.values()))
SIGNS = {".gif": b"GIF89a", ".png": b"\x89PNG\r\n\x1a\n", ".mp3": b"\xff\xf3", ".mp4": b"\x00\x00\x00\x20ftypisom"}


@all_cases("name", NAMES)
def test_every_name_has_a_stub_that_anybody_may_read(name: str) -> None:
    response = stub_response(name, Reason.ADBLOCK)
    assert response is not None
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["cache-control"] == "no-store"
    body = response.raw_content or b""
    suffix = name[name.rfind(".") :] if "." in name else ""
    if suffix in SIGNS:
        assert body.startswith(SIGNS[suffix])
        assert len(body) < 2000
    elif name.startswith("noopv"):
        assert ET.fromstring(body).tag.endswith("VMAP" if "vmap" in name else "VAST")
    elif name == "noopjson":
        assert json.loads(body) == {}
    elif suffix == ".js":
        assert response.headers["content-type"].startswith("text/javascript")
        assert body


@all_cases(
    ("method", "origin", "more", "has_body"),
    [
        ("GET", "", {"access-control-allow-origin": "*"}, True),
        ("HEAD", "", {"access-control-allow-origin": "*"}, False),
        (
            "GET",
            "https://a.example",
            {
                "access-control-allow-origin": "https://a.example",
                "access-control-allow-credentials": "true",
                "vary": "origin",
            },
            True,
        ),
        (
            "OPTIONS",
            "",
            {
                "access-control-allow-origin": "*",
                "access-control-allow-headers": "*",
                "access-control-allow-methods": "*",
            },
            True,
        ),
    ],
)
def test_who_may_read_a_stub_and_how(method: str, origin: str, more: dict[str, str], *, has_body: bool) -> None:
    response = stub_response("noopjson", Reason.ADBLOCK, method=method, origin=origin)
    assert response is not None
    told = {name: text for name, text in response.headers.items() if name.startswith("access-control-") or name == "vary"}
    assert (told, bool(response.content)) == (more, has_body)
    assert stub_response("no such stub", Reason.ADBLOCK) is None


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_every_script_runs_in_an_empty_page_and_keeps_its_promises() -> None:
    scripts = {name: (stub_response(name, Reason.ADBLOCK) or pytest.fail(name)).text for name in NAMES if name.endswith(".js")}
    page = r"""
const vm = require("vm"), scripts = JSON.parse(require("fs").readFileSync(0, "utf8")), out = {};
const CHECKS = {
  "google-analytics_analytics.js": "ga('send', 'event', {hitCallback: () => done()}); ga.getByName('x').send()",
  "googletagmanager_gtm.js": "dataLayer.push({event: 'x', eventCallback: () => done()})",
  "google-analytics_ga.js": "_gaq.push(() => done()); _gat._getTracker('x')._trackPageview()",
  "googletagservices_gpt.js":
    "googletag.cmd.push(() => { googletag.defineSlot('/a', [1, 1], 'x').addService(googletag.pubads());" +
    "googletag.display('x'); done() })",
  "google-ima.js": "const l = new google.ima.AdsLoader(new google.ima.AdDisplayContainer());" +
    "l.addEventListener(google.ima.AdErrorEvent.Type.AD_ERROR, e => { e.getError().getErrorCode(); done() }); l.requestAds({})",
  "amazon_apstag.js": "apstag.init({}); apstag.fetchBids({}, bids => bids.length === 0 && done())",
  "fingerprint2.js": "new Fingerprint2().get(() => done())",
  "fingerprint3.js": "FingerprintJS.load().then(a => a.get()).then(r => r.visitorId && done())",
  "prebid-ads.js": "pbjs.que.push(() => pbjs.requestBids({bidsBackHandler: () => done()}))",
  "nofab.js": "fuckAdBlock.onDetected(() => 0).onNotDetected(() => done())",
  "nobab.js": "blockAdBlock.onNotDetected(() => done())",
  "mxpnl_mixpanel.js": "mixpanel.track('x', {}, () => done())",
  "matomo.js": "_paq.push(['trackPageView']); _paq.push([function () { this.getVisitorId(); done() }])",
  "metrika-yandex-tag.js": "ym(1, 'reachGoal', 'x', {}, () => done())",
  "didomi-loader.js": "didomiOnReady.push(d => { d.getCurrentUserStatus().vendors.consent.enabled; done() })",
  "scorecardresearch_beacon.js": "COMSCORE.beacon({}); done()",
  "googlesyndication_adsbygoogle.js": "adsbygoogle.push({}); done()",
};
let left = 0;
for (const [name, text] of Object.entries(scripts)) {
  const element = { setAttribute() {}, appendChild() {} };
  const window = { setTimeout, Promise, console, Array, Object, Proxy, CustomEvent: class {}, location: { assign() {} } };
  window.window = window;
  window.document = { readyState: "complete", querySelectorAll: () => [element], createElement: () => element, head: element,
    documentElement: element, addEventListener() {}, dispatchEvent() {} };
  out[name] = "ran";
  window.done = () => { out[name] = "kept"; };
  try {
    vm.runInNewContext(text, window);
    if (CHECKS[name]) { out[name] = "silent"; vm.runInNewContext(CHECKS[name], window); }
  } catch (error) { out[name] = String(error); }
}
setTimeout(() => console.log(JSON.stringify([out, Object.keys(CHECKS)])), 50);
"""
    done = subprocess.run(["node", "-e", page], input=json.dumps(scripts), capture_output=True, text=True, timeout=60, check=True)
    out, checked = json.loads(done.stdout)
    assert set(checked) <= set(out)
    assert {name: what for name, what in out.items() if what != ("kept" if name in checked else "ran")} == {}


def test_a_rule_without_a_known_stub_blocks_as_usual() -> None:
    request = Request(parse_url("https://ads.example/x.js"), None, ResourceType.SCRIPT)
    verdict = Verdict(Action.BLOCK, Reason.ADBLOCK, stub="../ca/mitmproxy-ca.pem")
    answer = BlockPages().block(request, verdict, "en")
    assert answer.headers["x-gatewayfilter"] == "block; reason=adblock"


@all_cases(("origin", "allowed"), [("", "*"), ("https://page.example", "https://page.example"), ("null", "null")])
def test_the_asking_page_may_read_it_with_credentials(origin: str, allowed: str) -> None:
    request = Request(parse_url("https://ads.example/x.js"), None, ResourceType.XMLHTTPREQUEST)
    answer = BlockPages().block(request, Verdict(Action.BLOCK, Reason.ADBLOCK, stub="noopjson"), "en", origin)
    assert answer.status_code == 200
    assert answer.text == "{}\n"
    assert answer.headers["access-control-allow-origin"] == allowed
    assert answer.headers["x-gatewayfilter"] == "stub; reason=adblock"


def test_head_has_no_body_and_a_preflight_is_answered() -> None:
    head = stub_response("noopjs", Reason.ADBLOCK, method="HEAD")
    assert head is not None
    assert head.raw_content == b""
    preflight = stub_response("noopjson", Reason.ADBLOCK, method="OPTIONS", origin="https://a.example")
    assert preflight is not None
    assert preflight.headers["access-control-allow-methods"] == "*"
