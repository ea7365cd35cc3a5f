"""Models of the API that several subjects of people share: pages of lists, windows, states."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Final

from fastapi import HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model import ALL_DAYS, Window
from gatewayfilter.use_cases.people.client_states import ClientState
from gatewayfilter.web.access.changes import changing
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.services import WebServices

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LONGEST_TEXT: Final = 2_000
MOST_ITEMS: Final = 1_000
_MIDNIGHT: Final = 1_440

After = Annotated[str, Query(description="The last name of the page before; the page begins behind it.", max_length=200)]
Limit = Annotated[int, Query(description="Items of a page.", ge=1, le=MOST_ITEMS)]
ItemName = Annotated[str, Path(description="Its name.", max_length=200)]
Name = Annotated[str, Field(description="Unique name, 1 to 100 characters.", min_length=1, max_length=100)]
Note = Annotated[str, Field(description="For later readers.", max_length=LONGEST_TEXT)]


class Body(BaseModel):
    """What a request sends; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class WindowModel(Body):
    """A daily window in wall-clock time. It belongs to the day on which it begins."""

    begin: Annotated[str, Field(description="When it begins, as 21:00.", pattern=r"^\d{2}:\d{2}$")]
    end: Annotated[
        str,
        Field(
            description="When it ends, as 06:00; not later than `begin`: on the day after. 24:00 is midnight.",
            pattern=r"^\d{2}:\d{2}$",
        ),
    ]
    days: Annotated[list[str], Field(description="Weekdays on which it begins: mon, tue …", min_length=1, max_length=7)]


class StateModel(BaseModel):
    """What a client may at an instant."""

    kind: Annotated[str, Field(description="paused, blocked (everything is), or filtered.")]
    until: Annotated[float | None, Field(description="Unix seconds at which `kind` changes; null: not within eight days.")]
    cause: Annotated[str, Field(description="The schedule or policy that blocks everything.")]
    schedules: Annotated[list[str], Field(description="Schedules with an open window.")]
    services: Annotated[list[str], Field(description="Ids of the services that are blocked.")]
    categories: Annotated[list[str], Field(description="Categories that a policy or schedule blocks on purpose.")]
    allowed: Annotated[list[str], Field(description="Categories that a policy or schedule allows.")]
    used_up: Annotated[list[str], Field(description="Quotas that are used up.")]


def state_model(state: ClientState) -> StateModel:
    """Returns a state as the API shows it."""
    return StateModel(
        kind=state.kind.value,
        until=state.until,
        cause=state.cause,
        schedules=list(state.schedules),
        services=list(state.services),
        categories=list(state.categories),
        allowed=list(state.allowed),
        used_up=list(state.used_up),
    )


def window_model(window: Window) -> WindowModel:
    """Returns a window as the API shows it."""
    return WindowModel(begin=_clock(window.begin), end=_clock(window.end), days=[DAYS[day] for day in sorted(window.days)])


def read_windows(windows: Sequence[WindowModel]) -> tuple[Window, ...]:
    """Returns windows from a request.

    Raises:
        PolicyError: a time or day is none.
    """
    return tuple(_window(window) for window in windows)


@contextmanager
def editing(services: WebServices, identity: Identity, action: str, subject: str, detail: str = "") -> Iterator[None]:
    """Makes the changes of the block, as `changing` does.

    Raises:
        HTTPException: 422, what is sent refers to something that is not there.
    """
    try:
        with changing(services, identity, action, subject, detail):
            yield
    except MissingItemError as error:
        raise HTTPException(422, str(error)) from error


def page_of[Item](items: Iterable[tuple[str, Item]], after: str, limit: int) -> tuple[list[Item], str | None]:
    """Returns a page of items by name, and the name behind which the next one begins, `None` at the end."""
    ordered = sorted((pair for pair in items if pair[0] > after), key=lambda pair: pair[0])
    page = ordered[:limit]
    return [item for _, item in page], page[-1][0] if len(ordered) > limit else None


def existing[Item](item: Item | None, what: str, name: str) -> Item:
    """Returns an item that must exist.

    Raises:
        HTTPException: 404, there is none.
    """
    if item is None:
        raise HTTPException(404, f"there is no {what} {name[:100]!r}")
    return item


def check_free(taken: bool, what: str, name: str) -> None:  # noqa: FBT001  a condition
    """Checks that a name is free.

    Raises:
        HTTPException: 409, it is not.
    """
    if taken:
        raise HTTPException(409, f"there is a {what} {name[:100]!r} already")


def _window(window: WindowModel) -> Window:
    begin, end = _minute(window.begin), _minute(window.end)
    days = frozenset(DAYS.index(day) for day in window.days if day in DAYS)
    if len(days) != len(set(window.days)):
        raise PolicyError(f"a day is one of {', '.join(DAYS)}")
    if begin in (_MIDNIGHT, end):
        raise PolicyError("a window begins before 24:00 and does not end when it begins; 00:00 to 24:00 is the whole day")
    return Window(begin, end, days & ALL_DAYS)


def _minute(text: str) -> int:
    hour, minute = int(text[:2]), int(text[3:])
    if minute > 59 or hour * 60 + minute > _MIDNIGHT:
        raise PolicyError(f"{text} is no time: a day goes from 00:00 to 24:00")
    return hour * 60 + minute


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
