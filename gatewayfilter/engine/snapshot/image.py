"""A snapshot image: a snapshot before it is written, as sections, with the counters from which its gate is derived."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gatewayfilter.engine.snapshot.format import pack_sections
from gatewayfilter.engine.tables.counting_bloom import CountingBloom
from gatewayfilter.model import ManualRule, PolicySet, Source, to_record


@dataclass(frozen=True, slots=True)
class SnapshotImage:
    """The parts of a snapshot file.

    Attributes:
        sections: name and content, in the order of the file. Those from another snapshot are views of its file.
        counters: stored by the publisher, so that the next snapshot can be a patch of this one; `None` for none.
        learned: number of learned entries.
        checksums: of the sections that were copied unchanged, and verified in their file.
    """

    sections: tuple[tuple[str, bytes | memoryview], ...]
    counters: CountingBloom | None
    learned: int
    checksums: Mapping[str, bytes] = MappingProxyType({})

    def parts(self) -> list[bytes | memoryview]:
        """Returns the file, in parts to be written in sequence."""
        return pack_sections(self.sections, self.checksums)

    def to_bytes(self) -> bytes:
        """Returns the file."""
        return b"".join(self.parts())


def as_json(value: Any) -> bytes:
    """Returns a JSON section."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def source_rows(sources: list[Source]) -> list[list[object]]:
    """Returns the section `sources`."""
    return [[source.name, source.action, source.category, source.learned] for source in sources]


def rule_rows(rules: tuple[ManualRule, ...]) -> list[list[object]]:
    """Returns the section `rules`."""
    return [
        [
            rule.rule_id,
            rule.action,
            rule.kind,
            rule.pattern,
            rule.comment,
            rule.group,
            rule.expires_at,
            rule.enabled,
            *([rule.scope] if rule.scope else []),
        ]
        for rule in rules
    ]


def policy_rows(policies: PolicySet) -> list[dict[str, object]]:
    """Returns the value `policies` of the section `meta`."""
    return [to_record(item) for item in policies]
