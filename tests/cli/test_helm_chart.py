"""The Helm chart, by Helm's own code and the schemas of Kubernetes, offline: linted, rendered, each manifest validated."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "gatewayfilter"
KUBERNETES = ("1.25", "1.37")
"""The oldest version that has `autoscaling/v2` and `policy/v1` alone, and the newest whose schemas are there."""
EXTERNAL = {
    "filter": {"replicas": 2, "clients": ["192.0.2.0/24"], "authority": "ca"},
    "crawlers": {"enabled": True},
    "workers": {"enabled": True},
    "store": {"existingSecret": "database"},
    "redis": {"existingSecret": "redis"},
    "kafka": {"brokers": "kafka-1:9092", "existingSecret": "kafka"},
    "fingerprints": {"existingSecret": "fingerprints"},
}
BUNDLED = {
    "filter": {"replicas": 3},
    "crawlers": {"enabled": True},
    "workers": {"enabled": True},
    "fingerprints": {"existingSecret": "fingerprints"},
    "bundled": {"postgres": {"enabled": True}, "redis": {"enabled": True}, "kafka": {"enabled": True}},
}
CASES: dict[str, dict[str, Any]] = {"default": {}, "external": EXTERNAL, "bundled": BUNDLED}


@pytest.fixture
def helm() -> Any:
    """Helm's library, which `make services` installs: without it these tests fail, they do not skip."""
    return import_module("helm_python")


@pytest.fixture
def schemas() -> Any:
    """The schemas of Kubernetes, likewise."""
    return import_module("kubernetes_validate")


def manifests(helm: Any, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns what the chart renders."""
    with helm.Chart.load(CHART) as chart:
        rendered = chart.render(values, name="filter", namespace="filter")
    texts = [text for name, text in rendered.items() if name.endswith(".yaml")]
    return [found for text in texts for found in YAML(typ="safe").load_all(text) if found]


@pytest.mark.services
@pytest.mark.parametrize("name", CASES)
def test_helm_lint_has_nothing_to_say(helm: Any, name: str) -> None:
    report = helm.lint(CHART, CASES[name], strict=True)
    assert report["total_charts_linted"] == 1
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


@pytest.mark.services
@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("name", CASES)
def test_each_manifest_is_one_of_kubernetes(helm: Any, schemas: Any, name: str, version: str) -> None:
    kinds = []
    for manifest in manifests(helm, CASES[name]):
        schemas.validate(manifest, version, strict=True)
        kinds.append(manifest["kind"])
    scaled = kinds.count("HorizontalPodAutoscaler")
    assert scaled == (0 if name == "default" else 2)  # crawlers and stream workers
    assert "Deployment" in kinds or "StatefulSet" in kinds


@pytest.mark.services
def test_what_no_schema_allows_is_found(helm: Any, schemas: Any) -> None:
    manifest = next(found for found in manifests(helm, {}) if found["kind"] == "Service")
    manifest["spec"]["noSuchField"] = 1
    with pytest.raises(schemas.ValidationError):
        schemas.validate(manifest, KUBERNETES[-1], strict=True)
    assert helm.lint(CHART, {"filter": {"replicas": "many"}}, strict=True)["errors"] != []
