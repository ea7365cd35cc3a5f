"""The processes of `gatewayfilter run`: a supervisor over one proxy worker a core and the learner."""

from gatewayfilter.processes.supervisor import run

__all__ = ["run"]
