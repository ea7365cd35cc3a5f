"""Settings of section `[classify]`."""

from enum import StrEnum

from gatewayfilter.settings.base import Section


class Extractor(StrEnum):
    """How the main text of a page is found."""

    DENSITY = "density"
    RESILIPARSE = "resiliparse"


class Strictness(StrEnum):
    """How certain the classifier must be before a page is blocked."""

    RELAXED = "relaxed"
    STANDARD = "standard"
    STRICT = "strict"


class ClassifySettings(Section):
    """How pages are read."""

    extractor: Extractor = Extractor.DENSITY
    """Extractor of a page's main text: text `density`, or `resiliparse`."""
    topics: bool = True
    """Whether the bundled text model decides beside the words; off: words alone, and a model of your own."""
    strictness: Strictness = Strictness.STANDARD
    """Certainty at which a page is blocked: `relaxed` blocks the clearest pages alone, `strict` doubtful ones too."""
