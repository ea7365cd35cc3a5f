"""A service: an entry of the catalogue of well-known sites and apps that policies block by name, and quotas count."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the catalogue.

    Attributes:
        service_id: its name in policies, schedules and quotas.
        name, name_zh: for display, in English and in simplified Chinese.
        group: what kind of service it is, such as `games`; a quota for this category counts it.
        hosts: canonical hosts; each covers its subdomains.
        media: those of them, or subdomains of them, that carry what is played: a quota counts every request to them.
        patterns: canonical hosts in which `*` stands for any characters but a dot; each covers no subdomains.
        ports: TCP ports that belong to the service at any host.
        part_of: the service whose hosts contain these on purpose, `""` for none.
        source: page by which the hosts were chosen.
        own: whether it comes from the operator's own catalogue.
        excepted: subdomains of its hosts that belong to other sites, each with its own subdomains.
    """

    service_id: str
    name: str
    name_zh: str
    group: str
    hosts: tuple[str, ...]
    media: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    part_of: str = ""
    source: str = ""
    own: bool = False
    excepted: tuple[str, ...] = ()
