"""The state of the stream of the filter's own decisions to Kafka."""

from dataclasses import dataclass

from gatewayfilter.config import LogPrivacy, Settings
from gatewayfilter.scaleout.kafka.decision_feed import FOLLOWER, feed_state
from gatewayfilter.store import Store
from gatewayfilter.use_cases.process_facts import process_facts


@dataclass(frozen=True, slots=True)
class DecisionStream:
    """How far decisions are sent.

    Attributes:
        topic: where they go.
        brokers: of Kafka.
        state: `sending`, `away`, or `stopped` while the filter does not run.
        fault: why Kafka did not take them last, `""` for none.
        position: id of the newest decision that Kafka has, `None` before the first start.
        waiting: decisions behind it.
        sentence: all of it in words.
    """

    topic: str
    brokers: str
    state: str
    fault: str
    position: int | None
    waiting: int
    sentence: str


def decision_stream(settings: Settings, store: Store) -> DecisionStream:
    """Returns how far decisions are sent.

    Raises:
        StoreError: the database refuses.
    """
    status = process_facts(settings, "decisions")
    found = feed_state(store.log_followers)
    state, fault = str(status.get("state", "stopped")), str(status.get("fault", ""))
    parts = ["nothing was sent yet" if found.position is None else f"sent up to decision {found.position}"]
    parts.append(f"{found.waiting:,} wait")
    if settings.log.privacy is LogPrivacy.OFF:
        parts.append("there is no decision log (log.privacy = off)")
    if state == "stopped":
        parts.append("the filter does not run")
    if fault:
        parts.append(f"Kafka does not take them: {fault}")
    return DecisionStream(
        settings.kafka.decisions, settings.kafka.brokers, state, fault, found.position, found.waiting, "; ".join(parts) + "."
    )


def send_from_oldest(store: Store) -> None:
    """Has all decisions sent that the log still has.

    Raises:
        StoreError: the database refuses.
    """
    store.log_followers.move(FOLLOWER, 0)
