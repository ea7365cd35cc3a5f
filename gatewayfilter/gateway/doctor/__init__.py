"""The doctor: a row of small checks, each with a sentence on what is wrong and one on how to mend it."""

from gatewayfilter.gateway.doctor.finding import Finding, Level, Patient
from gatewayfilter.gateway.doctor.runner import CHECKS, examine

__all__ = ["CHECKS", "Finding", "Level", "Patient", "examine"]
