"""Nothing leaves the machine unasked: all packets of a filter that runs with traffic, recorded in a network of its own.

Needs root and `ip`; skips elsewhere. The namespace has an outer interface with a default route, so that whatever is sent to
anywhere becomes a packet there. A raw socket reads them; the origin that clients request stands on loopback, so none may come.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ORIGIN = "198.51.100.7"
SECONDS = 12
_PROGRAM = r"""
import json, os, socket, struct, subprocess, sys, threading, time, urllib.request, urllib.error
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
folder, command, origin, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])

def run(*words):
    subprocess.run(words, check=True)

run("ip", "link", "set", "lo", "up")
run("ip", "link", "add", "out0", "type", "veth", "peer", "name", "far0")
run("ip", "link", "set", "far0", "up")
run("ip", "addr", "add", "198.51.100.1/24", "dev", "out0")
run("ip", "addr", "add", "fd99::1/64", "dev", "out0", "nodad")
run("ip", "link", "set", "out0", "up")
run("ip", "route", "add", "default", "via", "198.51.100.254")
run("ip", "-6", "route", "add", "default", "via", "fd99::fe")
run("ip", "neigh", "add", "198.51.100.254", "lladdr", "02:00:00:00:00:fe", "dev", "out0", "nud", "permanent")
run("ip", "-6", "neigh", "add", "fd99::fe", "lladdr", "02:00:00:00:00:fe", "dev", "out0", "nud", "permanent")
run("ip", "addr", "add", origin + "/32", "dev", "lo")

class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []
    def do_GET(self):
        Page.seen.append([self.path, self.headers.get("user-agent", ""), self.headers.get("cookie", "")])
        body = b"<p>beans in May</p>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

ThreadingHTTPServer.server_bind = TCPServer.server_bind  # without a question for the name of the address
server = ThreadingHTTPServer((origin, 80), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()

packets = []
def record():
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
    raw.bind(("out0", 0))
    while True:
        data = raw.recv(65536)
        kind = struct.unpack("!H", data[12:14])[0]
        if kind == 0x0800:
            to, protocol = socket.inet_ntop(socket.AF_INET, data[30:34]), data[23]
        elif kind == 0x86DD:
            to, protocol = socket.inet_ntop(socket.AF_INET6, data[38:54]), data[20]
        else:
            to, protocol = "", 0
        packets.append([hex(kind), to, protocol, data[14:114].hex()])
threading.Thread(target=record, daemon=True).start()

environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAYFILTER_")}
environment |= {"GATEWAYFILTER_DATA_DIR": folder + "/state", "GATEWAYFILTER_PROXY__LISTEN": "127.0.0.1:8080"}
environment |= {"GATEWAYFILTER_PROXY__WORKERS": "1", "GATEWAYFILTER_PROXY__ALLOW_NETWORKS": "198.51.100.0/24"}
environment |= {"GATEWAYFILTER_CRAWL__ALLOW_NETWORKS": "198.51.100.0/24", "GATEWAYFILTER_WEB__LISTEN": "127.0.0.1:8081"}
log = open(folder + "/filter.log", "w")
running = subprocess.Popen([command, "run"], env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
while "is filtering on" not in (line := running.stdout.readline()):
    if not line:
        sys.exit("the filter ended: " + open(folder + "/filter.log").read()[-2000:])
FIELDS = {"Cookie": "secret=1", "User-Agent": "client"}
opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:8080"}))
answers, number, ends = {}, 0, time.monotonic() + seconds
while time.monotonic() < ends or answers.get("200", 0) <= 3 or not answers.get("403"):
    number += 1
    url = "http://blocked.gatewayfilter.test/" if number % 5 == 0 else f"http://{origin}/page/{number}"
    if number % 7 == 0:
        url = f"http://127.0.0.1:8081/login?{number}"
    target = opener if number % 7 else urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with target.open(urllib.request.Request(url, headers=FIELDS), timeout=20) as answer:
            answer.read()
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    except OSError:
        status = 0  # the dashboard is still starting
    answers[str(status)] = answers.get(str(status), 0) + 1
    time.sleep(0.2)
asked = list(packets)
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
probe.sendto(b"probe", ("203.0.113.9", 9))
ends = time.monotonic() + 20
while time.monotonic() < ends and not any(packet[1] == "203.0.113.9" for packet in packets):
    time.sleep(0.1)
running.terminate()
code = running.wait(30)
found = {"packets": asked, "probed": packets[len(asked):], "answers": answers}
found |= {"origin": Page.seen, "code": code}
print(json.dumps(found))
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None, reason="needs root and ip"
)
def test_nothing_leaves_the_machine_unasked(tmp_path: Path) -> None:
    """The defaults but for the addresses: lists, learner, dashboard and crawler run; only requested sites are contacted."""
    command = str(Path(sys.executable).with_name("gatewayfilter"))
    program = [sys.executable, "-c", _PROGRAM, str(tmp_path), command, ORIGIN, str(SECONDS)]
    done = subprocess.run(["unshare", "--net", *program], capture_output=True, text=True, check=False, timeout=250)
    if "Operation not permitted" in done.stderr:
        pytest.skip("network namespaces are not allowed")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["code"] == 0
    assert found["answers"]["200"] > 3
    assert found["answers"]["403"] > 0
    # ICMPv6 is the kernel's own: router solicitation and multicast groups.
    assert [packet for packet in found["packets"] if packet[2] != 58 and not packet[1].startswith("ff02::")] == []
    assert any(packet[1] == "203.0.113.9" for packet in found["probed"]), "a packet to the outside would have been seen"
    crawled = [seen for seen in found["origin"] if seen[1].startswith("GatewayFilter")]
    assert all(cookie == "" for _, _, cookie in crawled)
    assert {agent.partition("/")[0] for _, agent, _ in found["origin"]} <= {"client", "GatewayFilter"}
    told = (tmp_path / "filter.log").read_text()
    assert "secret=1" not in told
