"""What the fork server imports: nothing that its children do not use."""

import subprocess
import sys

import pytest

from gatewayfilter.processes.entry_points import PRELOAD

UNUSED = ("ldap3", "flask", "werkzeug", "click", "fastapi", "uvicorn", "pyarrow", "redis", "playwright", "mitmproxy.tools")
PROGRAM = """
import sys
from importlib import import_module
for name in sys.argv[1].split():
    import_module(name)
from mitmproxy.addons import block, tlsconfig
print(*sys.modules)
"""


@pytest.mark.slow
def test_children_get_no_module_that_they_do_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, " ".join(PRELOAD)], capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    assert "gatewayfilter.proxy.master" in imported
    assert [name for name in imported if name.startswith(UNUSED)] == []
