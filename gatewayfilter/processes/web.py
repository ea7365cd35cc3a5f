"""The process of the dashboard."""

from gatewayfilter.config import Loaded
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.web.server import serve


def run_web(loaded: Loaded) -> None:
    """Serves the dashboard until SIGTERM. The entry of its process; exits with 2 when it cannot start."""
    begin_child(loaded.settings)
    with ending_with_a_sentence():
        serve(loaded)
