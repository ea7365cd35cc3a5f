"""Servers on loopback that take messages: HTTP, SMTP, and one that accepts and says nothing."""

import base64
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


class HttpReceiver:
    """Keeps what is posted; answers with the next of `statuses`, else 200."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.statuses: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): text for name, text in self.headers.items()}
                receiver.received.append(Received(self.path, headers, body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
                self.send_header("location", "/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Silent:
    """Accepts connections and sends `greeting`, byte by byte twice a second, for ever."""

    def __init__(self, greeting: bytes = b"") -> None:
        self._greeting = greeting
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                accepted = self._listener.accept()[0]
                threading.Thread(target=self._drip, args=(accepted,), daemon=True).start()

    def _drip(self, accepted: socket.socket) -> None:
        with accepted, suppress(OSError):
            while not self._closing.wait(0.1):
                if self._greeting:
                    accepted.sendall(self._greeting)

    def close(self) -> None:
        self._closing.set()
        self._listener.close()


@dataclass
class Mail:
    """A mail as it arrived."""

    sender: str
    receivers: list[str]
    text: str
    login: str
    tls: bool


@dataclass
class SmtpReceiver:
    """A small mail server: EHLO, STARTTLS, AUTH PLAIN, MAIL, RCPT, DATA, QUIT."""

    context: ssl.SSLContext | None = None
    tls_first: bool = False
    refuse: bool = False
    mails: list[Mail] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                accepted = self._listener.accept()[0]
                threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        with suppress(OSError):
            if self.tls_first:
                assert self.context is not None
                accepted = self.context.wrap_socket(accepted, server_side=True)
            self._converse(accepted)
            accepted.close()

    def _converse(self, accepted: socket.socket) -> None:
        lines = accepted.makefile("rb")
        tls, login, sender, receivers = self.tls_first, "", "", list[str]()

        def say(text: str) -> None:
            accepted.sendall(f"{text}\r\n".encode())

        say("220 test")
        while line := lines.readline().decode().strip():
            verb = line[:4].upper()
            if verb == "EHLO":
                say("250-test\r\n250-AUTH PLAIN\r\n250 STARTTLS" if self.context and not tls else "250-test\r\n250 AUTH PLAIN")
            elif verb == "STAR":
                assert self.context is not None
                say("220 go on")
                accepted = self.context.wrap_socket(accepted, server_side=True)
                lines, tls = accepted.makefile("rb"), True
            elif verb == "AUTH":
                login = base64.b64decode(line.split()[2]).decode()
                say("535 no" if self.refuse else "235 yes")
            elif verb == "DATA":
                say("354 go on")
                text = b""
                while (part := lines.readline()) != b".\r\n":
                    text += part
                self.mails.append(Mail(sender, receivers, text.decode(), login, tls))
                say("250 ok")
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                sender = line if verb == "MAIL" else sender
                receivers += [line] if verb == "RCPT" else []
                say("250 ok")

    def close(self) -> None:
        self._listener.close()
