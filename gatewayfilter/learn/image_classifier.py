"""The hook for an external image classifier, named in the settings; its failures are contained.

Source: [page-dedup] images are judged like texts, and their verdicts kept with their fingerprints.
Deviation: none is bundled. What judges pictures well is large, and a choice of the operator's.
"""

import logging
from importlib import import_module
from typing import Any

from gatewayfilter.errors import ConfigError
from gatewayfilter.interfaces import ClassifyImage
from gatewayfilter.model import Classification

_log = logging.getLogger(__name__)


class ForeignImages:
    """Client of an external image classifier. Implements `interfaces.ClassifyImage`.

    One that fails, or answers with anything but a classification, has not judged: the picture stays unknown, and what it
    failed of is logged the first time.

    Args:
        other: the classifier.
        name: as the settings name it.
    """

    def __init__(self, other: ClassifyImage, name: str) -> None:
        self._other = other
        self._name = name
        self._said: set[str] = set()

    def classify_image(self, body: bytes, content_type: str) -> Classification | None:
        """Judges an image; `None` when it has no verdict."""
        try:
            found: object = self._other.classify_image(body, content_type)
        except Exception as error:  # noqa: BLE001  it is not ours: one picture may not end the judging of the others
            self._failed(f"{type(error).__name__}: {error}"[:200])
            return None
        if found is None or isinstance(found, Classification):
            return found
        self._failed(f"it answers with a {type(found).__name__}, not with a Classification or None")
        return None

    def _failed(self, why: str) -> None:
        if why not in self._said and len(self._said) < 100:
            self._said.add(why)
            _log.warning("the image classifier %s failed: %s", self._name, why)


def load_image_classifier(name: str) -> ClassifyImage | None:
    """Returns the classifier of this name, `MODULE:OBJECT`; `None` for `""`.

    The object is a classifier, or a class or function that returns one when it is called with nothing.

    Raises:
        ConfigError: it cannot be imported, or is none.
    """
    if not name:
        return None
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        if isinstance(found, type) or not hasattr(found, "classify_image"):
            found = found()
    except Exception as error:  # a module that is not ours may fail in any way
        raise ConfigError(f"learn.image_classifier {name!r} cannot be used: {type(error).__name__}: {error}") from error
    if not callable(getattr(found, "classify_image", None)):
        raise ConfigError(f"learn.image_classifier {name!r} has no method classify_image(body, content_type)")
    return ForeignImages(found, name)
