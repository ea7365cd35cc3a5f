"""Settings of section `[notify]`."""

from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from gatewayfilter.settings.base import Section


class MailSecurity(StrEnum):
    """How a mail server is spoken to."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class NotifyEvent(StrEnum):
    """What the operator is notified of."""

    REQUEST = "request"
    SOURCE = "source"
    DEVICE = "device"


class NotifySettings(Section):
    """Messages to the operator. A channel is on when its address is set."""

    events: tuple[NotifyEvent, ...] = (NotifyEvent.REQUEST, NotifyEvent.SOURCE)
    """What messages are sent of: `request` (for a page), `source` (a list fails for days), `device` (a new one on a link)."""
    base_url: str = ""
    """Address of the dashboard, for links in messages; without one there are none."""
    digest_s: float = Field(default=60.0, ge=1, le=86_400)
    """Least time between two messages of a channel, in seconds; what happens meanwhile is one message."""
    timeout_s: float = Field(default=10.0, ge=1, le=300)
    """Time limit of sending one message, in seconds."""
    webhook_url: SecretStr = SecretStr("")
    """Address that gets a POST with JSON."""
    webhook_key: SecretStr = SecretStr("")
    """Key of the signature of webhooks (HMAC-SHA256)."""
    ntfy_url: SecretStr = SecretStr("")
    """Address of a topic of ntfy, e.g. `https://ntfy.sh/my-topic`."""
    ntfy_token: SecretStr = SecretStr("")
    """Access token for that topic."""
    smtp_host: str = ""
    """Mail server."""
    smtp_port: int = Field(default=587, ge=1, le=65_535)
    """Its port."""
    smtp_security: MailSecurity = MailSecurity.STARTTLS
    """Connection to the mail server: `starttls`, `tls` from the start, or `none`."""
    smtp_user: str = ""
    """Name for the log-in at the mail server; without one there is no log-in."""
    smtp_password: SecretStr = SecretStr("")
    """Password for it."""
    mail_from: str = ""
    """Sender of mails."""
    mail_to: tuple[str, ...] = ()
    """Receivers of mails."""
    command: tuple[str, ...] = ()
    """A program with its arguments that is run without a shell; it gets the message as JSON on standard input."""

    @property
    def channel_names(self) -> tuple[str, ...]:
        """The names of the channels that are on."""
        on = {
            "webhook": self.webhook_url.get_secret_value(),
            "ntfy": self.ntfy_url.get_secret_value(),
            "mail": self.smtp_host and self.mail_to,
            "command": self.command,
        }
        return tuple(name for name, address in on.items() if address)

    @field_validator("base_url")
    @classmethod
    def _is_web_address(cls, value: str) -> str:
        _check_web_address(value)
        return value

    @field_validator("webhook_url", "ntfy_url")
    @classmethod
    def _is_secret_web_address(cls, value: SecretStr) -> SecretStr:
        _check_web_address(value.get_secret_value())
        return value

    @field_validator("mail_from")
    @classmethod
    def _is_mail_address(cls, value: str) -> str:
        if value and not _is_mailbox(value):
            raise ValueError("must be a mail address, as me@example.com")
        return value

    @field_validator("mail_to")
    @classmethod
    def _are_mail_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(_is_mailbox, value)):
            raise ValueError("must be mail addresses, as me@example.com")
        return value


def _check_web_address(text: str) -> None:
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname or not text.isprintable() or " " in text):
        raise ValueError("must be an address that begins with http:// or https://")


def _is_mailbox(text: str) -> bool:
    name, _, host = text.rpartition("@")
    return bool(name) and bool(host) and text.isascii() and text.isprintable() and not set(text) & set(' ,;<>()[]\\"')
