"""The Helm chart: linted, rendered over a matrix of values, and checked against the schemas of Kubernetes;
its commands run against a server.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.servers import Server, certify, command, data_directory

PROJECT = Path(__file__).parents[2]
CHART = PROJECT / "contrib" / "helm" / "msmq-fast"
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
        "serviceAccountName": "backups",
        "backup": {"url": "gs://backups/mq1", "every": "1 h", "keep": 3},
    },
    "programs without TLS": {
        "programs": {"enabled": True, "port": 1900},
        "test": {"tokenSecret": "helm-test"},
    },
    "a restore": {
        "restore": {"enabled": True, "url": "az://backups/mq1/20261127T091500Z-" + "0" * 32 + "-01234567"}
    },
    "all switches": {
        "networkPolicy": {
            "enabled": True,
            "peers": ["10.0.0.0/8", "2001:db8::/32"],
            "monitoringNamespace": {"kubernetes.io/metadata.name": "monitoring"},
            "programNamespaces": {"kubernetes.io/metadata.name": "shop"},
            "objectStorage": ["0.0.0.0/0"],
            "objectStoragePorts": [443, 9000],
        },
        "backup": {"url": "s3://backups/mq1", "credentialsSecret": "s3"},
        "restore": {"enabled": True},
        "programs": {"enabled": True, "tlsSecret": "mq-tls"},
        "test": {"tokenSecret": "helm-test"},
        "podDisruptionBudget": {"enabled": True},
        "serviceMonitor": {"enabled": True, "labels": {"release": "p"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "p"}},
        "dashboard": {"enabled": True, "labels": {"release": "p"}},
    },
}
pytestmark = [
    pytest.mark.long(seconds=60),
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

    for version in (VERSIONS[0], VERSIONS[-1]):
        report = lint(CHART, values=values, strict=True, kube_version=version)
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
    (tests,) = spec["ingress"]
    assert tests["from"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == "msmq-fast-test"
    assert tests["ports"] == [{"port": 1802, "protocol": "TCP"}]
    assert [port["port"] for rule in spec["egress"] for port in rule["ports"]] == [53, 53]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"backup": {"url": "s3://key:secret@bucket"}}, "url"),
        ({"backup": {"url": "http://host"}}, "url"),
        ({"backup": {"keep": 0}}, "keep"),
        ({"backup": {"every": "often"}}, "every"),
        ({"restore": {"enabled": True}}, r"restore\.enabled needs restore\.url or backup\.url"),
        ({"test": {"tokenSecret": "x"}}, r"test\.tokenSecret needs programs\.enabled"),
        (
            {"backup": {"url": "s3://b"}, "networkPolicy": {"enabled": True}},
            r"networkPolicy\.objectStorage: name the networks",
        ),
        ({"networkPolicy": {"peers": ["peer.example.org"]}}, "peers"),
        ({"persistence": {"size": "much"}}, "size"),
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


def leaves(values: dict[str, Any], *place: str) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, *place, name)
        else:
            yield (*place, name)


def test_the_schema_knows_each_value_and_no_other() -> None:
    import yaml

    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))

    def known(node: dict[str, Any], *place: str) -> Iterator[tuple[str, ...]]:
        if "properties" not in node or place == ("resources",):
            yield place
            return
        assert node["additionalProperties"] is False, place
        for name, inner in node["properties"].items():
            yield from known(inner, *place, name)

    assert set(known(schema)) - {("global",)} == set(leaves(values))


def spec_of(found: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = found["StatefulSet", "msmq"]["spec"]["template"]["spec"]
    return spec


def test_the_server_itself_makes_the_snapshots() -> None:
    found = rendered(MATRIX["all switches"])
    assert not {kind for kind, _ in found} & {"CronJob", "Job"}
    (container,) = spec_of(found)["containers"]
    environment = {entry["name"]: entry["value"] for entry in container["env"]}
    assert environment["MSMQ_FAST_BACKUP__URL"] == "s3://backups/mq1"
    assert environment["MSMQ_FAST_BACKUP__EVERY"] == "6h"
    assert environment["MSMQ_FAST_BACKUP__KEEP"] == "28"
    assert container["envFrom"] == [{"secretRef": {"name": "s3"}}]
    done = command("config", "check", environment=environment)
    # The certificate is in the pod alone.
    assert b"MSMQ_FAST" not in done.stderr, done


def test_the_init_container_restores_a_snapshot_once(tmp_path: Path) -> None:
    (init,) = spec_of(rendered(MATRIX["all switches"]))["initContainers"]
    (container,) = spec_of(rendered(MATRIX["all switches"]))["containers"]
    assert init["envFrom"] == container["envFrom"]
    assert init["securityContext"] == container["securityContext"]
    (tmp_path / "objects").mkdir()
    url = f"file://{tmp_path / 'objects'}"
    replaced = {"s3://backups/mq1": url, "/var/lib/msmq-fast": str(tmp_path / "data")}
    arguments = [replaced.get(word, word) for word in init["args"]]
    assert arguments != init["args"]
    with data_directory() as data:
        server = Server(data, environment={"MSMQ_FAST_BACKUP__URL": url}).start()
        try:
            server.ok("backup", "create")
        finally:
            server.stop()
    for _ in range(2):
        done = command(*arguments)
        assert done.returncode == 0, done
    assert (tmp_path / "data" / "data.mdb").exists()


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "TLS"])
def test_the_test_pod_converses_with_a_server(tmp_path: Path, tls: bool) -> None:
    values = MATRIX["all switches" if tls else "programs without TLS"]
    found = rendered(values)
    pod = found["Pod", "msmq-test"]
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert not found["Service", "msmq"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (_, conversation) = pod["spec"]["containers"]
    environment = {entry["name"]: entry["value"] for entry in conversation["env"]}
    scheme, port = ("tls", 1803) if tls else ("tcp", 1900)
    assert environment.pop("MSMQ_FAST_ENDPOINT") == f"{scheme}://msmq-programs:{port}"
    assert found["Service", "msmq-programs"]["spec"]["ports"][0]["port"] == port
    flags: dict[str, str] = {}
    if tls:
        key, certificate = tmp_path / "tls.key", tmp_path / "ca.crt"
        certify(key, certificate, "subjectAltName=DNS:localhost")
        flags = {
            "MSMQ_FAST_LISTEN__APP__TLS_CERTIFICATE": str(certificate),
            "MSMQ_FAST_LISTEN__APP__TLS_KEY": str(key),
        }
        assert environment.pop("SSL_CERT_FILE").endswith("/ca.crt")
        environment["SSL_CERT_FILE"] = str(certificate)
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    program = bin_directory / "msmq-fast"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m msmq_fast "$@"\n')
    program.chmod(0o755)
    with data_directory() as data:
        server = Server(data, environment={"MSMQ_FAST_LISTEN__APP__PORT": "0"} | flags).start()
        try:
            server.ok(
                "user", "add", "helm-test", "--no-password", "--group", "administrators", "--data", str(data)
            )
            (made,) = server.ok("user", "token", "helm-test", "--data", str(data))
            (tmp_path / "token").write_text(made["token"])
            assert Path(environment["MSMQ_FAST_TOKEN_FILE"]) == Path("/run/secrets/msmq-fast/token")
            environment |= {
                "MSMQ_FAST_TOKEN_FILE": str(tmp_path / "token"),
                "MSMQ_FAST_ENDPOINT": f"{scheme}://localhost:{server.port('app-tcp')}",
                "PATH": f"{bin_directory}:/usr/bin:/bin",
            }
            for _ in range(2):
                done = subprocess.run(
                    conversation["command"],
                    env=environment,
                    cwd=PROJECT,
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )
                assert done.returncode == 0, done.stderr
                assert "sent by helm test" in done.stdout
            assert server.ok("queue", "list") == []
            (tmp_path / "token").write_text("wrong")
            done = subprocess.run(
                conversation["command"], env=environment, capture_output=True, timeout=60, check=False
            )
            assert done.returncode != 0
        finally:
            server.stop()


def test_without_a_token_the_test_pod_asks_for_readiness() -> None:
    (container,) = rendered({})["Pod", "msmq-test"]["spec"]["containers"]
    with data_directory() as data:
        server = Server(data).start()
        try:
            url = container["command"][-1]
            assert url == "http://msmq-headless:1802/readyz"
            asked = url.replace("msmq-headless:1802", f"127.0.0.1:{server.port('admin')}")
            done = subprocess.run(
                [sys.executable, *container["command"][1:-1], asked],
                capture_output=True,
                timeout=30,
                check=False,
            )
            assert done.returncode == 0, done.stderr
        finally:
            server.stop()


def test_the_network_policy_admits_programs_the_test_and_the_object_storage() -> None:
    spec = rendered(MATRIX["all switches"])["NetworkPolicy", "msmq"]["spec"]
    opened = {port["port"]: rule["from"] for rule in spec["ingress"] for port in rule["ports"]}
    assert opened[1803] == [
        {"podSelector": {}},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}},
    ]
    labels = rendered(MATRIX["all switches"])["Pod", "msmq-test"]["metadata"]["labels"]
    (source,) = opened[1802]
    assert source["podSelector"]["matchLabels"].items() <= labels.items()
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} >= {443, 9000, 53, 1801}


def test_the_values_of_the_guide_can_be_used_together() -> None:
    import yaml

    text = (PROJECT / "docs" / "how-to" / "kubernetes.md").read_text(encoding="utf-8")
    values: dict[str, Any] = {}
    for block in re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        values |= yaml.safe_load(block)
    assert values.keys() == {"image", "server", "backup", "restore"}
    found = rendered(values)
    assert tomllib.loads(found["ConfigMap", "msmq"]["data"]["msmq.toml"])["queues"][0]["name"] == "orders"
    (init,) = spec_of(found)["initContainers"]
    assert "s3://backups/mq1" in init["args"]
