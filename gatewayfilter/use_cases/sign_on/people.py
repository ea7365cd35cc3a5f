"""People at the provider and their accounts: found by issuer and subject, with the role that the provider gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Actor, Role, Via, check_account_name
from gatewayfilter.settings import OidcSettings
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.log_in import From
from gatewayfilter.use_cases.sign_on.failures import SignOnError, SignOnReason

_NAME_CLAIMS: Final = ("preferred_username", "email", "name", "sub")
_MOST_NAMESAKES: Final = 50
_LONGEST_NAME: Final = 60
_MOST_VALUES: Final = 2_000


@dataclass(frozen=True, slots=True)
class Person:
    """Who logged in at the provider.

    Attributes:
        subject: identifies the person there for ever; names and mail addresses do not.
        names: candidates for the name of an account, the best first.
        values: of the claim that decides about roles.
    """

    subject: str
    names: tuple[str, ...]
    values: frozenset[str]


def person_of(claims: Mapping[str, Any], claim: str) -> Person:
    """Returns the person of verified claims.

    Args:
        claims: of the ID token, and those that the provider told beside it.
        claim: the one that decides about roles.
    """
    names = tuple(str(claims[name]) for name in _NAME_CLAIMS if isinstance(claims.get(name), str))
    return Person(claims["sub"], names, values_of_claim(claims, claim))


def values_of_claim(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """Returns the values of a claim: one text or a list of texts. A dot leads into an object."""
    found: Any = claims
    for part in (claim,) if claim in claims else claim.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return frozenset({found})
    return (
        frozenset(value for value in found[:_MOST_VALUES] if isinstance(value, str)) if isinstance(found, list) else frozenset()
    )


def external_id(issuer: str, subject: str) -> str:
    """Returns what an account is linked to."""
    return f"{issuer} {subject}"


class People:
    """Finds and makes the accounts of people. Threads may share one.

    Args:
        settings: of single sign-on.
        store: the database.
        accounts: changes accounts.
        trail: records changes.
    """

    def __init__(self, settings: OidcSettings, store: Store, accounts: Accounts, trail: AuditTrail) -> None:
        self._settings = settings
        self._store = store
        self._accounts = accounts
        self._trail = trail

    def account_of(self, person: Person, source: From) -> Account:
        """Returns the account of a person, with the present role; makes one where the settings have it so.

        Raises:
            SignOnError: there is no account, it is disabled, or the provider gives no role.
        """
        identity = external_id(self._settings.issuer, person.subject)
        role = self._role(person)
        account = self._store.accounts.find_external(identity)
        if account is not None and account.disabled:
            raise SignOnError(SignOnReason.DISABLED, f"the account {account.name} is disabled", person.subject)
        if role is None and self._settings.maps_roles and (account is not None or self._settings.new_accounts):
            raise SignOnError(SignOnReason.ROLE, f"no value of the claim {self._settings.claim} gives a role", person.subject)
        if account is not None:
            return self._with_role(account, role, source)
        if role is None or not self._settings.new_accounts:
            raise SignOnError(SignOnReason.UNKNOWN, "no account is linked to the person", person.subject)
        return self._made(person, identity, role, source)

    def _role(self, person: Person) -> Role | None:
        """Returns the highest role that the provider gives."""
        oidc = self._settings
        wanted = ((Role.ADMIN, oidc.admin_values), (Role.APPROVER, oidc.approver_values), (Role.VIEWER, oidc.viewer_values))
        return next((role for role, values in wanted if person.values.intersection(values)), None)

    def _with_role(self, account: Account, role: Role | None, source: From) -> Account:
        if role is None or role is account.role:
            return account
        try:
            after = self._accounts.set_role(account, role)
        except AccountError:  # the last admin stays one
            return account
        self._record(after, "user.role", f"role {role}, given by the provider", source)
        return after

    def _made(self, person: Person, identity: str, role: Role, source: From) -> Account:
        name = self._free_name(person)
        try:
            account = self._accounts.add(name, role, None, external_id=identity)
        except AccountError as error:  # another log-in of the same person was faster, or there are too many accounts
            made = self._store.accounts.find_external(identity)
            if made is None:
                raise SignOnError(SignOnReason.UNKNOWN, str(error), person.subject) from error
            return made
        self._record(account, "user.added", f"role {role}, by single sign-on", source)
        return account

    def _free_name(self, person: Person) -> str:
        """Returns a name that no account has: that of an account without a link is never taken over."""
        wanted = next(filter(None, map(_usable_name, person.names)), "user")
        for name in (wanted, *(f"{wanted}-{number}" for number in range(2, _MOST_NAMESAKES))):
            if self._store.accounts.find(name) is None:
                return name
        raise SignOnError(SignOnReason.UNKNOWN, f"there are {_MOST_NAMESAKES} accounts named {wanted} already", person.subject)

    def _record(self, account: Account, action: str, detail: str, source: From) -> None:
        self._trail.record(Actor(account.name, Via.SESSION, source.network), action, account.name, detail)


def _usable_name(text: str) -> str:
    """Returns a name of an account made of a text, `""` when nothing of it is usable."""
    name = "".join(mark if mark.isalnum() or mark in "._-@+" else "-" for mark in text[:_LONGEST_NAME]).strip("._-@+")
    try:
        return check_account_name(name)
    except AccountError:
        return ""
