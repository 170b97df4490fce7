"""The Helm chart: linted, rendered over a matrix of values, and checked against the schemas of Kubernetes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CHART = Path(__file__).parents[2] / "contrib" / "helm" / "msmq-fast"
VERSIONS = [f"1.{minor}" for minor in range(28, 38)]
FOREIGN = ("ServiceMonitor", "PrometheusRule")  # of the Prometheus operator
MATRIX: dict[str, dict[str, Any]] = {
    "defaults": {},
    "all ports": {
        "ports": {"endpointMapper": 135, "http": 80, "https": 443},
        "service": {
            "type": "LoadBalancer",
            "annotations": {"a": "b"},
            "loadBalancerSourceRanges": ["10.0.0.0/8"],
        },
        "server": {"advertisedAddress": "mq.example.org"},
    },
    "few ports": {"ports": {"ping": 0, "remoteRead": 0, "qm2qm": 0}, "service": {"type": "NodePort"}},
    "settings": {
        "server": {
            "name": "ORDERS01",
            "drainTimeoutSeconds": 45,
            "config": '[[queues]]\nname = "orders"\n',
            "env": [{"name": "MSMQ_FAST_LOG__FORMAT", "value": "json"}],
        },
        "secrets": {"existingSecret": "msmq", "protectionKey": "secrets.key"},
        "persistence": {"accessMode": "ReadWriteOnce", "storageClass": "fast", "size": "1Ti"},
        "image": {"tag": "1", "pullSecrets": ["registry"]},
        "resources": {"limits": {"memory": "4Gi"}},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "mq", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
        "podAnnotations": {"note": "x"},
    },
    "all switches": {
        "networkPolicy": {
            "enabled": True,
            "peers": ["10.0.0.0/8", "2001:db8::/32"],
            "monitoringNamespace": {"kubernetes.io/metadata.name": "monitoring"},
        },
        "podDisruptionBudget": {"enabled": True},
        "serviceMonitor": {"enabled": True, "labels": {"release": "p"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "p"}},
        "dashboard": {"enabled": True, "labels": {"release": "p"}},
    },
}
pytestmark = [
    pytest.mark.long(seconds=20),
    pytest.mark.needs(modules=("helm_python", "kubernetes_validate", "yaml")),
]


def rendered(values: dict[str, Any], name: str = "msmq") -> dict[tuple[str, str], dict[str, Any]]:
    """The objects, by kind and name."""
    import yaml
    from helm_python import Chart

    with Chart.load(CHART) as chart:
        manifests = chart.render(values=values, name=name)
    objects = [
        document
        for path, text in manifests.items()
        if path.endswith(".yaml")
        for document in yaml.safe_load_all(text)
        if document
    ]
    return {(found["kind"], found["metadata"]["name"]): found for found in objects}


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_the_chart_is_linted_strictly(values: dict[str, Any]) -> None:
    from helm_python import lint

    report = lint(CHART, values=values, strict=True)
    assert not report["messages"], report


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_each_object_has_the_shape_of_each_version_of_kubernetes(values: dict[str, Any]) -> None:
    import kubernetes_validate

    for (kind, _), found in rendered(values).items():
        if kind not in FOREIGN:
            for version in VERSIONS:
                kubernetes_validate.validate(found, version, strict=True)


def test_the_pod_is_one_that_the_restricted_standard_admits() -> None:
    (claim, pod) = (
        rendered(MATRIX["settings"])["StatefulSet", "msmq"]["spec"][key]
        for key in ("volumeClaimTemplates", "template")
    )
    assert claim[0]["spec"]["accessModes"] == ["ReadWriteOnce"]
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["fsGroup"] == 18010
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["terminationGracePeriodSeconds"] == 75
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    environment = {entry["name"]: entry["value"] for entry in container["env"]}
    assert environment["MSMQ_FAST_SERVER__NAME"] == "ORDERS01"
    assert environment["MSMQ_FAST_SERVER__DRAIN_TIMEOUT"] == "45 s"
    assert environment["MSMQ_FAST_PROTECTION__KEY_FILE"] == "/run/secrets/msmq-fast/secrets.key"


def test_a_changed_configuration_restarts_the_pod() -> None:
    sums = set()
    for text in ("", "[log]\n"):
        found = rendered({"server": {"config": text}})
        assert found["ConfigMap", "msmq"]["data"] == {"msmq.toml": text}
        annotations = found["StatefulSet", "msmq"]["spec"]["template"]["metadata"]["annotations"]
        sums.add(annotations["checksum/config"])
    assert len(sums) == 2


def test_the_side_car_of_grafana_finds_the_dashboard() -> None:
    found = rendered(MATRIX["all switches"])["ConfigMap", "msmq-dashboard"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(found["data"]["msmq-fast.json"])["title"] == "msmq-fast"


def test_peers_keep_their_addresses_and_find_the_published_ports() -> None:
    spec = rendered(MATRIX["all ports"])["Service", "msmq"]["spec"]
    assert spec["externalTrafficPolicy"] == "Local"
    assert [(port["port"], port["protocol"]) for port in spec["ports"]] == [
        (1801, "TCP"),
        (3527, "UDP"),
        (135, "TCP"),
        (2103, "TCP"),
        (2105, "TCP"),
        (80, "TCP"),
        (443, "TCP"),
    ]


def test_without_peers_the_network_policy_admits_no_message() -> None:
    spec = rendered({"networkPolicy": {"enabled": True}})["NetworkPolicy", "msmq"]["spec"]
    assert spec["ingress"] is None
    assert [port["port"] for rule in spec["egress"] for port in rule["ports"]] == [53, 53]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"replicas": 2}, "replicas"),
        ({"persistence": {"accessMode": "ReadWriteMany"}}, "accessMode"),
        ({"server": {"name": "A-NAME-THAT-IS-TOO-LONG"}}, "name"),
        ({"servers": {}}, "servers"),
    ],
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any], word: str) -> None:
    from helm_python import HelmError

    with pytest.raises(HelmError, match=word):
        rendered(values)


def test_a_release_whose_pod_has_a_longer_name_than_a_computer_is_refused() -> None:
    from helm_python import HelmError

    with pytest.raises(HelmError, match=r"15 characters at most; set server\.name"):
        rendered({}, name="a-long-release-name")
