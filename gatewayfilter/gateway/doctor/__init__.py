"""The checks of `doctor`, each with one sentence on the fault and one on its repair."""

from gatewayfilter.gateway.doctor.finding import Finding, Level, Patient
from gatewayfilter.gateway.doctor.runner import CHECKS, examine, examine_by, name_of

__all__ = ["CHECKS", "Finding", "Level", "Patient", "examine", "examine_by", "name_of"]
