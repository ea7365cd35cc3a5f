"""The channel that sends mails by SMTP."""

import smtplib
import socket
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, Final

from gatewayfilter.errors import NotifyError
from gatewayfilter.notify.deadline import Deadline
from gatewayfilter.notify.message import Message, one_line
from gatewayfilter.settings import MailSecurity

_NAME: Final = "localhost"
"""How the filter names itself to the server: a look-up of its own name may take long."""


class MailChannel:
    """Sends messages as mails.

    Args:
        server: host and port.
        security: STARTTLS, TLS from the start, or none.
        user, password: for the log-in; none without a user.
        sender: address.
        receivers: addresses.
        timeout_s: limit for sending a mail.
        context: of TLS; by default certificates are verified by the system's authorities.
    """

    name = "mail"

    def __init__(
        self,
        server: tuple[str, int],
        security: MailSecurity,
        login: tuple[str, str],
        sender: str,
        receivers: Sequence[str],
        timeout_s: float,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._server = server
        self._security = security
        self._login = login
        self._sender = sender
        self._receivers = tuple(receivers)
        self._timeout_s = timeout_s
        self._context = context

    def send(self, message: Message) -> None:
        """Sends a message.

        Raises:
            NotifyError: the server did not take it.
        """
        mail = EmailMessage()
        mail["Subject"] = one_line(message.title, 150)
        mail["From"] = self._sender
        mail["To"] = ", ".join(self._receivers)
        mail["Date"] = formatdate(localtime=True)
        mail["Message-ID"] = f"<{message.number}.gatewayfilter@{self._sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(message.text)
        with Deadline(self._timeout_s) as deadline:
            try:
                self._deliver(mail, deadline)
            except (OSError, smtplib.SMTPException, ValueError, UnicodeError) as error:
                why = "no answer in time" if deadline.passed or isinstance(error, TimeoutError) else _reason(error)
                raise NotifyError(f"{self._server[0]} did not take the mail: {why}") from error

    def _deliver(self, mail: EmailMessage, deadline: Deadline) -> None:
        context = self._context or ssl.create_default_context()
        host, port = self._server
        options = {"host": host, "port": port, "local_hostname": _NAME, "timeout": self._timeout_s}
        secure = self._security is MailSecurity.TLS
        with _TlsClient(deadline, context, **options) if secure else _Client(deadline, **options) as client:
            if self._security is MailSecurity.STARTTLS:
                client.starttls(context=context)
            if self._login[0]:
                client.login(*self._login)
            client.send_message(mail)


class _Client(smtplib.SMTP):
    """A client whose socket is shut down at a deadline, also while it waits for the greeting."""

    def __init__(self, deadline: Deadline, **options: Any) -> None:
        self._deadline = deadline
        super().__init__(**options)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        found = socket.create_connection((host, port), timeout)
        self._deadline.watch(found)
        return found


class _TlsClient(_Client):
    """The same with TLS from the start."""

    def __init__(self, deadline: Deadline, context: ssl.SSLContext, **options: Any) -> None:
        self._context = context
        super().__init__(deadline, **options)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        found = super()._get_socket(host, port, timeout)
        return self._context.wrap_socket(found, server_hostname=host)


def _reason(error: Exception) -> str:
    """Returns why it failed, without what an exception quotes of the log-in or the mail."""
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{type(error).__name__} {error.smtp_code}"
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else type(error).__name__
