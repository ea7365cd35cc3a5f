"""Versions of policy items: what two people who edit one item compare."""

import json
from collections.abc import Iterable
from hashlib import blake2b

from gatewayfilter.model import PolicyItem, PolicySet, to_record


def version_of(*items: PolicyItem) -> str:
    """Returns a digest of items as they are stored, 16 hexadecimal digits."""
    return _digest(to_record(item) for item in items)


def policy_version(policies: PolicySet, name: str) -> str:
    """Returns the version of a policy with its schedules and quotas, `""` when there is no such policy."""
    policy = policies.policy(name)
    if policy is None:
        return ""
    schedules = sorted((one for one in policies.schedules.values() if one.policy == name), key=lambda one: one.name)
    quotas = sorted((one for one in policies.quotas.values() if one.policy == name), key=lambda one: one.name)
    return version_of(policy, *schedules, *quotas)


def _digest(records: Iterable[dict[str, object]]) -> str:
    text = json.dumps(list(records), sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()
