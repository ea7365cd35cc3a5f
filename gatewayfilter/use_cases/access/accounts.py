"""Accounts of the dashboard: added, changed and removed by an admin, and by their owners."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from gatewayfilter.errors import AccountError, MissingAccountError
from gatewayfilter.model import Account, Role, check_account_name
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.passwords import Passwords, check_new_password
from gatewayfilter.use_cases.access.second_factor import matching_step, new_recovery_codes, recovery_digest

LANGUAGES: Final = ("", "en", "zh")
"""Languages of pages; `""` for that of the browser."""
_LONGEST_EXTERNAL: Final = 2_300
"""Characters of an issuer, a space and a subject."""


class Accounts:
    """Changes accounts. Each method is one transaction, and raises `AccountError` where it makes no sense.

    Args:
        store: the database.
        passwords: hashes.
        clock: Unix seconds.
    """

    def __init__(self, store: Store, passwords: Passwords | None = None, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._passwords = passwords or Passwords()
        self._clock = clock

    def add(self, name: str, role: Role, password: str | None, *, only_first: bool = False, external_id: str = "") -> Account:
        """Adds an account.

        Args:
            name: as typed.
            role: of the account.
            password: `None` for an account that logs in by single sign-on alone.
            only_first: refuse it when there is any account.
            external_id: of single sign-on.
        """
        name = check_account_name(name)
        password_hash = ""
        if password is not None:
            check_new_password(password, name)
            password_hash = self._passwords.hash(password)
        _check_external(external_id)
        now = self._clock()
        made = Account(0, name, role, password_hash, external_id=external_id, created_at=now, changed_at=now)
        return self._store.accounts.add(made, only_first=only_first)

    def find(self, name: str) -> Account:
        """Returns the account with a name.

        Raises:
            AccountError: there is none.
        """
        found = self._store.accounts.find(name)
        if found is None:
            near = get_close_matches(name, [account.name for account in self._store.accounts.all()])
            raise MissingAccountError(f"there is no account {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return found

    def remove(self, account: Account) -> None:
        """Removes an account with its sessions and tokens. The last admin stays."""

        def edit(now: Account, every: Sequence[Account]) -> None:
            _refuse_without_admin([other for other in every if other != now], every)

        self._change(account, edit)

    def rename(self, account: Account, name: str) -> Account:
        """Gives an account another name."""
        name = check_account_name(name)
        return self._changed(account, lambda now, _: replace(now, name=name))

    def link(self, account: Account, external_id: str) -> Account:
        """Links an account to an identity of single sign-on, `""` for none.

        An account without a password could not log in any more without its link.
        """
        _check_external(external_id)

        def edit(now: Account, _: Sequence[Account]) -> Account:
            if not external_id and not now.password_hash:
                raise AccountError(f"{now.name} has no password; set one first")
            return replace(now, external_id=external_id)

        after = self._changed(account, edit)
        if after.external_id != account.external_id:
            self._store.sessions.remove_of(account.account_id)
        return after

    def set_role(self, account: Account, role: Role) -> Account:
        """Gives an account another role. The last admin stays one; sessions keep, with the new role."""

        def edit(now: Account, every: Sequence[Account]) -> Account:
            after = replace(now, role=role)
            _refuse_without_admin([after if other == now else other for other in every], every)
            return after

        return self._changed(account, edit)

    def set_disabled(self, account: Account, *, disabled: bool) -> Account:
        """Disables an account, whose sessions end, or enables it. The last admin stays enabled."""

        def edit(now: Account, every: Sequence[Account]) -> Account:
            after = replace(now, disabled=disabled)
            _refuse_without_admin([after if other == now else other for other in every], every)
            return after

        after = self._changed(account, edit)
        if disabled:
            self._store.sessions.remove_of(account.account_id)
        return after

    def set_language(self, account: Account, language: str) -> Account:
        """Sets the language of pages, `""` for that of the browser."""
        if language not in LANGUAGES:
            raise AccountError(f"there is no language {language!r}; there are {', '.join(filter(None, LANGUAGES))}")
        return self._changed(account, lambda now, _: replace(now, language=language))

    def check_password(self, account: Account, password: str) -> bool:
        """Returns whether it is the password of an account. Some 30 ms."""
        return self._passwords.fits(account.password_hash, password)

    def set_password(self, account: Account, password: str) -> Account:
        """Sets a new password, and ends all sessions of the account."""
        check_new_password(password, account.name)
        password_hash = self._passwords.hash(password)
        after = self._changed(account, lambda now, _: replace(now, password_hash=password_hash))
        self._store.sessions.remove_of(account.account_id)
        return after

    def enrol_second_factor(self, account: Account, secret: str, code: str) -> list[str]:
        """Requires one-time codes from now on, once a first one was typed. Returns the recovery codes, which are not stored."""
        now_s = self._clock()
        codes = new_recovery_codes()

        def edit(now: Account, _: Sequence[Account]) -> Account:
            step = matching_step(secret, code, now_s)
            if step is None:
                raise AccountError("this is not the present code; is the clock of the phone right?")
            digests = tuple(map(recovery_digest, codes))
            return replace(now, totp_secret=secret, totp_step=step, recovery_digests=digests)

        self._changed(account, edit)
        return codes

    def remove_second_factor(self, account: Account) -> Account:
        """Requires no one-time code any more."""
        return self._changed(account, lambda now, _: replace(now, totp_secret="", totp_step=0, recovery_digests=()))

    def without_second_factor(self, account: Account, *, wanted: bool) -> Account:
        """As `remove_second_factor`; refused where one is wanted, which the owner alone can set up."""
        if wanted:
            raise AccountError("a second factor is set up by the owner of the account, on the page of the account")
        return self.remove_second_factor(account)

    def use_code(self, account: Account, code: str) -> bool:
        """Returns whether a one-time code or a recovery code is right. It is good once, in however many requests at a time."""
        now_s = self._clock()
        found: list[bool] = []

        def edit(now: Account, _: Sequence[Account]) -> Account:
            if not now.totp_secret:
                return now
            if (step := matching_step(now.totp_secret, code, now_s, now.totp_step)) is not None:
                found.append(True)
                return replace(now, totp_step=step)
            digest = recovery_digest(code)
            if digest not in now.recovery_digests:
                return now
            found.append(True)
            return replace(now, recovery_digests=tuple(other for other in now.recovery_digests if other != digest))

        self._store.accounts.change(account.account_id, edit)
        return bool(found)

    def _changed(self, account: Account, edit: Callable[[Account, Sequence[Account]], Account]) -> Account:
        after = self._change(account, edit)
        assert after is not None
        return after

    def _change(self, account: Account, edit: Callable[[Account, Sequence[Account]], Account | None]) -> Account | None:
        there: list[Account] = []

        def edit_now(now: Account, every: Sequence[Account]) -> Account | None:
            there.append(now)
            after = edit(now, every)
            return after if after is None or after == now else replace(after, changed_at=self._clock())

        after = self._store.accounts.change(account.account_id, edit_now)
        if not there:
            raise AccountError(f"there is no account {account.name!r} any more")
        return after


def _check_external(external_id: str) -> None:
    issuer, _, subject = external_id.partition(" ")
    is_whole = bool(issuer and subject.strip()) and external_id.isprintable() and len(external_id) <= _LONGEST_EXTERNAL
    if external_id and not is_whole:
        raise AccountError("an identity is an issuer, a space and a subject")


def _refuse_without_admin(after: Sequence[Account], before: Sequence[Account]) -> None:
    """Refuses a change after which no admin could log in, where one can now."""
    if any(map(_is_admin, before)) and not any(map(_is_admin, after)):
        raise AccountError("this is the last admin; make another account an admin first")


def _is_admin(account: Account) -> bool:
    return account.role is Role.ADMIN and not account.disabled
