"""Package `mitmproxy.addons` without its initializer: a first import, for processes that use only a few of its modules.

The initializer imports every add-on, and with them ldap3, Flask and Werkzeug: 257 modules and 11 MB in each worker, none of which
is used. With this module imported before mitmproxy, each add-on is imported where it is named. A stock mitmproxy needs the
initializer and does not import this module.
"""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from typing import Final

_PACKAGE: Final = "mitmproxy.addons"


def _without_initializer(found: ModuleSpec) -> ModuleSpec:
    """Returns the specification of a package at the same place that runs no code when it is imported."""
    spec = ModuleSpec(found.name, None, is_package=True)
    spec.submodule_search_locations = found.submodule_search_locations
    return spec


if _PACKAGE not in sys.modules and (_found := find_spec(_PACKAGE)) is not None:
    sys.modules[_PACKAGE] = module_from_spec(_without_initializer(_found))
