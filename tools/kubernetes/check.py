"""Holds manifests against the API of Kubernetes (kubernetes-validate of PyPI) and OpenTelemetryCollectors against the schema of their CRD. A field that is not in
a schema is an error, as with kubectl's --validate=strict.

    check.py FILE...
    check.py --schema CRD.yaml >opentelemetrycollector.json.gz

The schema is that of open-telemetry/opentelemetry-operator be894441 (0.158.0), config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml, Apache-2.0,
without its descriptions.
"""

import gzip
import json
import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml

SCHEMA = pathlib.Path(__file__).with_name("opentelemetrycollector.json.gz")
VERSIONS = ("1.30", "1.37")  # the first with preStop.sleep by default, and the newest


def schema(crd):
    """The schema of v1beta1 as JSON, gzipped."""

    def bare(x):
        if isinstance(x, dict):
            return {k: bare(v) for k, v in x.items() if k != "description" or not isinstance(v, str)}
        return [bare(v) for v in x] if isinstance(x, list) else x

    version = next(v for v in crd["spec"]["versions"] if v["name"] == "v1beta1")
    return gzip.compress(json.dumps(bare(version["schema"]["openAPIV3Schema"]), sort_keys=True).encode(), mtime=0)


def strict(x):
    """Has a schema refuse what it does not name, and take numbers where Kubernetes takes either."""
    if isinstance(x, dict):
        if x.get("x-kubernetes-int-or-string"):
            x.pop("type", None)
        if isinstance(x.get("properties"), dict) and not x.get("x-kubernetes-preserve-unknown-fields"):
            x.setdefault("additionalProperties", False)
    for v in x.values() if isinstance(x, dict) else x if isinstance(x, list) else ():
        strict(v)
    return x


def errors(doc):
    if doc["kind"] == "OpenTelemetryCollector":
        check = jsonschema.Draft4Validator(strict(json.loads(gzip.decompress(SCHEMA.read_bytes()))))
        return [f"{'.'.join(map(str, e.path))}: {e.message}" for e in check.iter_errors(doc)]
    found = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(doc, version, strict=True)
        except kubernetes_validate.ValidationError as e:
            found.append(f"{version}: {'.'.join(map(str, e.path))}: {e.message}")
    return found


def main(args):
    if args[0] == "--schema":
        sys.stdout.buffer.write(schema(yaml.safe_load(pathlib.Path(args[1]).read_text())))
        return 0
    bad = [f"{f}: {doc['kind']}: {e}" for f in args for doc in yaml.safe_load_all(pathlib.Path(f).read_text()) for e in errors(doc)]
    print("\n".join(bad))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
