"""Each channel against a real server on loopback: what arrives, what is refused, and what hangs."""

import email
import email.policy
import hmac
import json
import signal
import smtplib
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from gatewayfilter.errors import NotifyError
from gatewayfilter.interfaces import Notification
from gatewayfilter.notify.command_channel import CommandChannel
from gatewayfilter.notify.deadline import Deadline
from gatewayfilter.notify.http_channels import NtfyChannel, WebhookChannel
from gatewayfilter.notify.mail_channel import MailChannel
from gatewayfilter.notify.message import MOST_SHOWN, Message, compose
from gatewayfilter.settings import MailSecurity
from tests.notify.notify_servers import HttpReceiver, Silent, SmtpReceiver

HOSTILE = "Hi\r\nBcc: all@example.com\r\n\r\n\u202egnp.exe\x00\x1b[2J<b>" + "x" * 3000


def request(number: int = 7, **other: object) -> Notification:
    facts = {
        "request": number,
        "url": "http://games.example/a?b",
        "client": "10.0.0.7",
        "client_name": "Kim's tablet",
        "reason": "blacklist",
        "source_list": "ut1-games",
        "category": "games",
        "comment": "for school",
    }
    return Notification(number, "request", 1.0, facts | other)


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    found = HttpReceiver()
    yield found
    found.close()


def test_a_message_has_what_is_needed_to_act() -> None:
    message = compose([request()], "https://filter.example/")
    assert message.title == "GatewayFilter: Kim's tablet asks for games.example"
    for part in ("http://games.example/a?b", "blacklist, games, ut1-games", "for school", "request approve 7 --for 1h"):
        assert part in message.text
    assert message.link == "https://filter.example/requests"
    assert message.link in message.text
    assert compose([request()]).link == ""


def test_many_are_one_message() -> None:
    message = compose([request(number) for number in range(1, 101)])
    assert (message.number, message.event) == (100, "digest")
    assert message.title.startswith("GatewayFilter: 100 messages")
    assert message.title.endswith(f"{compose([request(1)]).title.removeprefix('GatewayFilter: ')}, …"), "the first of them"
    assert "more:" not in compose([request(number) for number in range(1, MOST_SHOWN + 1)]).text
    assert "and 1 more" in compose([request(number) for number in range(1, MOST_SHOWN + 2)]).text
    assert f"and {100 - MOST_SHOWN} more" in message.text
    assert len(message.events) == 100
    assert len(message.text) < 20_000


def test_what_users_wrote_is_one_bounded_line() -> None:
    message = compose([request(comment=HOSTILE, client_name=HOSTILE, url=f"http://[{HOSTILE}")])
    assert "\r" not in message.title + message.text
    assert "\n" not in message.title
    assert "Bcc: all@example.com" not in message.text.splitlines()
    assert not {"\u202e", "\x00", "\x1b"} & set(message.title + message.text)
    assert len(message.text) < 2500


def test_a_webhook_is_signed(receiver: HttpReceiver) -> None:
    WebhookChannel(f"{receiver.url}/hook?a=b", "secret", 60.0, lambda: 77.0).send(compose([request()]))
    (found,) = receiver.received
    assert found.path == "/hook?a=b"
    expected = hmac.new(b"secret", b"77." + found.body, "sha256").hexdigest()
    assert found.headers["x-gatewayfilter-signature"] == f"sha256={expected}"
    assert (found.headers["x-gatewayfilter-timestamp"], found.headers["x-gatewayfilter-delivery"]) == ("77", "7")
    body = json.loads(found.body)
    assert (
        body["events"][0] | {"approve": "gatewayfilter request approve 7 --for 1h", "comment": "for school"} == body["events"][0]
    )


def test_ntfy(receiver: HttpReceiver) -> None:
    NtfyChannel(f"{receiver.url}/topic", "tk_1", 60.0).send(compose([request(client_name="平板")], "http://filter.example"))
    (found,) = receiver.received
    assert (found.path, found.headers["authorization"]) == ("/topic", "Bearer tk_1")
    assert found.headers["title"].startswith("=?utf-8?B?")
    assert found.headers["click"] == "http://filter.example/requests"
    assert "平板 asks to unblock" in found.body.decode()


@pytest.mark.parametrize("status", [301, 302, 404, 500])
def test_other_answers_are_failures_and_not_followed(status: int, receiver: HttpReceiver) -> None:
    receiver.statuses = [status]
    with pytest.raises(NotifyError, match=f"HTTP {status}"):
        WebhookChannel(f"{receiver.url}/token-in-path", "secret", 60.0).send(compose([request()]))
    assert len(receiver.received) == 1


@pytest.mark.slow
@pytest.mark.parametrize("greeting", [b"", b"x", b"HTTP/1.1 200 OK\r\nx: y\r\n"])
def test_a_server_that_hangs_has_a_deadline(greeting: bytes) -> None:
    silent = Silent(greeting)
    began = time.monotonic()
    channels: list[WebhookChannel | MailChannel] = [
        WebhookChannel(f"http://127.0.0.1:{silent.port}/token", "secret", 0.6),
        MailChannel(("127.0.0.1", silent.port), MailSecurity.NONE, ("", ""), "a@b.example", ["c@d.example"], 0.6),
        MailChannel(("127.0.0.1", silent.port), MailSecurity.TLS, ("", ""), "a@b.example", ["c@d.example"], 0.6),
    ]
    for channel in channels:
        with pytest.raises(NotifyError) as failure:
            channel.send(compose([request()]))
        assert "token" not in str(failure.value)
    assert time.monotonic() - began < 20
    silent.close()


def test_nothing_listens() -> None:
    with socket.socket() as held:  # bound, so that no other socket takes the port, and not listening
        held.bind(("127.0.0.1", 0))
        with pytest.raises(NotifyError, match="refused"):
            NtfyChannel(f"http://127.0.0.1:{held.getsockname()[1]}/x", "", 60.0).send(compose([request()]))


@pytest.fixture
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server and of a client that trusts it."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return server, client


def mail_channel(server: SmtpReceiver, security: MailSecurity, context: ssl.SSLContext | None = None) -> MailChannel:
    to = ["parent@example.com", "other@example.com"]
    return MailChannel(("127.0.0.1", server.port), security, ("me", "pass word"), "filter@example.com", to, 60.0, context)


@pytest.mark.parametrize("security", MailSecurity)
def test_mail(security: MailSecurity, tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    secure = security is not MailSecurity.NONE
    server = SmtpReceiver(tls[0] if secure else None, tls_first=security is MailSecurity.TLS)
    mail_channel(server, security, tls[1]).send(compose([request(client_name=HOSTILE, comment="作业")]))
    (found,) = server.mails
    assert (found.tls, found.login) == (secure, "\0me\0pass word")
    assert [line.partition("<")[2].rstrip(">") for line in found.receivers] == ["parent@example.com", "other@example.com"]
    parsed = email.message_from_string(found.text, policy=email.policy.default)
    assert parsed["Bcc"] is None
    assert parsed["To"] == "parent@example.com, other@example.com"
    assert parsed["Message-ID"] == "<7.gatewayfilter@example.com>"
    assert "\n" not in parsed["Subject"]
    assert "作业" in parsed.get_content()
    server.close()


def test_a_mail_server_that_refuses_or_is_another(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    refusing = SmtpReceiver(refuse=True)
    with pytest.raises(NotifyError, match="535") as failure:
        mail_channel(refusing, MailSecurity.NONE).send(compose([request()]))
    assert "pass word" not in str(failure.value)
    without_tls = SmtpReceiver()
    with pytest.raises(NotifyError, match="SMTPNotSupportedError"):
        mail_channel(without_tls, MailSecurity.STARTTLS, tls[1]).send(compose([request()]))
    untrusted = SmtpReceiver(tls[0])
    with pytest.raises(NotifyError):
        mail_channel(untrusted, MailSecurity.STARTTLS).send(compose([request()]))
    assert not refusing.mails + without_tls.mails + untrusted.mails


def script(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "hook.py"
    path.write_text(text)
    return [sys.executable, str(path), str(tmp_path / "out.json")]


def test_a_program_gets_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYFILTER_NOTIFY__SMTP_PASSWORD", "hidden")
    monkeypatch.setenv("AWS_SECRET", "hidden")
    command = script(
        tmp_path,
        "import json, os, sys\njson.dump([sys.argv[2:], json.load(sys.stdin), dict(os.environ)], open(sys.argv[1], 'w'))\n",
    )
    CommandChannel(command, 60.0).send(compose([request(client_name="$(reboot); `x`")]))
    arguments, message, environment = json.loads((tmp_path / "out.json").read_text())
    assert arguments == ["request", "GatewayFilter: $(reboot); `x` asks for games.example"]
    assert message["events"][0]["request"] == 7
    assert "hidden" not in environment.values()


@pytest.mark.parametrize(
    ("text", "why"),
    [("raise SystemExit(3)", "ended with 3"), ("import time; time.sleep(60)", "took longer")],
)
def test_a_program_that_fails_or_hangs(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(NotifyError, match=why):
        CommandChannel(script(tmp_path, text), 0.5 if "time" in text else 60.0).send(compose([request()]))
    with pytest.raises(NotifyError, match="cannot be run"):
        CommandChannel(["/no/such/program"], 0.5).send(compose([request()]))


def test_a_test_message() -> None:
    message = compose(
        [Notification(1, "test", 1.0, {}), Notification(2, "source", 1.0, {"source": "x", "days": 3, "error": "404"})]
    )
    assert isinstance(message, Message)
    assert "The list x could not be updated for 3 days: 404" in message.text


def test_what_is_not_set_is_not_sent(receiver: HttpReceiver) -> None:
    WebhookChannel(receiver.url, "", 60.0, lambda: 77.9).send(compose([request()]))
    NtfyChannel(receiver.url, "", 60.0).send(compose([request()]))
    hook, ntfy = receiver.received
    assert (hook.path, hook.headers["content-type"], hook.headers["x-gatewayfilter-timestamp"]) == ("/", "application/json", "77")
    assert "x-gatewayfilter-signature" not in hook.headers
    assert ntfy.headers["title"] == "GatewayFilter: Kim's tablet asks for games.example"
    assert ntfy.headers.keys().isdisjoint({"authorization", "click"})


def test_what_is_sent_as_json_is_ascii_and_a_text_for_ntfy_is_cut_between_characters(receiver: HttpReceiver) -> None:
    message = compose([request(client_name="平板")])
    WebhookChannel(receiver.url, "", 60.0).send(message)
    assert receiver.received[0].body.isascii()
    assert json.loads(receiver.received[0].body)["title"] == message.title
    for text, sent in (("平" * 2000, "平" * 1300), ("a" + "平" * 2000, "a" + "平" * 1299), ("a" * 3900, "a" * 3900)):
        NtfyChannel(receiver.url, "", 60.0).send(replace(message, text=text))
        assert receiver.received[-1].body.decode() == sent


def test_a_mail_has_the_local_time_and_a_short_subject_and_no_log_in_without_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    server = SmtpReceiver()
    channel = MailChannel(("127.0.0.1", server.port), MailSecurity.NONE, ("", ""), "a@b.example", ["c@d.example"], 60.0)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        channel.send(replace(compose([request()]), title="t" * 151))
    finally:
        monkeypatch.undo()
        time.tzset()
    (found,) = server.mails
    assert found.login == ""
    parsed = email.message_from_string(found.text, policy=email.policy.default)
    assert parsed["Date"].datetime.utcoffset() == timedelta(hours=9)
    assert parsed["Subject"] == f"{'t' * 150}…"
    assert (parsed["From"], parsed["Auto-Submitted"]) == ("a@b.example", "auto-generated")
    server.close()


def test_a_user_may_have_no_password() -> None:
    server = SmtpReceiver()
    MailChannel(("127.0.0.1", server.port), MailSecurity.NONE, ("me", ""), "a@b.example", ["c@d.example"], 60.0).send(
        compose([request()])
    )
    (found,) = server.mails
    assert found.login == "\0me\0"
    server.close()


@pytest.mark.parametrize(
    ("error", "passed", "why"),
    [
        (OSError(111, "refused"), False, "refused"),
        (OSError(111, "refused"), True, "no answer in time"),
        (TimeoutError(), False, "no answer in time"),
        (smtplib.SMTPServerDisconnected("of the log-in"), False, "SMTPServerDisconnected"),
        (smtplib.SMTPAuthenticationError(535, b"of the log-in"), False, "SMTPAuthenticationError 535"),
        (ValueError("of the mail"), False, "ValueError"),
    ],
)
def test_why_a_mail_was_not_taken(monkeypatch: pytest.MonkeyPatch, error: Exception, *, passed: bool, why: str) -> None:
    def refuse(*_: object) -> None:
        raise error

    deadline = Deadline(60.0)
    deadline.passed = passed
    monkeypatch.setattr("gatewayfilter.notify.mail_channel.Deadline", lambda _: deadline)
    monkeypatch.setattr("gatewayfilter.notify.mail_channel.socket.create_connection", refuse)
    channel = MailChannel(("mail.example", 25), MailSecurity.NONE, ("", ""), "a@b.example", ["c@d.example"], 60.0)
    with pytest.raises(NotifyError) as failure:
        channel.send(compose([request()]))
    assert str(failure.value) == f"mail.example did not take the mail: {why}"


def test_a_program_gets_ascii_in_a_session_of_its_own_at_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    told = "import json, os, sys\njson.dump([sys.stdin.buffer.read().isascii(), os.getsid(0) == os.getpid(), os.getcwd(), "
    command = script(tmp_path, f"{told}os.environ.get('TZ')], open(sys.argv[1], 'w'))\n")
    CommandChannel(command, 60.0).send(compose([request(client_name="平板")]))
    assert json.loads((tmp_path / "out.json").read_text()) == [True, True, "/", "Asia/Tokyo"]


def test_a_program_that_was_killed_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[subprocess.Popen[bytes]]()

    class Kept(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            begun.append(self)

    monkeypatch.setattr(subprocess, "Popen", Kept)
    with pytest.raises(NotifyError, match=r"took longer than 0\.2 s and was killed"):
        CommandChannel(script(tmp_path, "import time; time.sleep(60)"), 0.2).send(compose([request()]))
    assert [process.returncode for process in begun] == [-signal.SIGKILL]
