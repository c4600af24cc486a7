#!/usr/bin/env bash
# Renders deploy/kubernetes/{agent,gateway,operator}.yaml with the configurations of deploy/otlp, the first two from their values and a checkout of the chart:
#
#   go install helm.sh/helm/v3/cmd/helm@v3.22.0
#   git clone --depth 1 --branch opentelemetry-collector-0.170.0 https://github.com/open-telemetry/opentelemetry-helm-charts /tmp/charts
#   tools/kubernetes/render.sh /tmp/charts/charts/opentelemetry-collector
set -eu
chart=$(realpath "$1")
cd "$(dirname "$0")/../.."
for what in agent gateway; do
  { echo alternateConfig: && sed 's/^/  /' "deploy/otlp/$what.yaml"; } |
    helm template trainbridge "$chart" --namespace trainbridge --kube-version 1.34 -f "deploy/kubernetes/$what-values.yaml" -f - |
    sed '/^ *$/d; /^# Source:/d; /helm.sh\/chart:/d; /app.kubernetes.io\/managed-by:/d' >"deploy/kubernetes/$what.yaml"
done
{
  cat tools/kubernetes/operator.yaml
  sed -e '/^#/d; /^$/d; /^  health_check:/,/recovery_duration/d; s/, health_check]/]/; s/^  nvml:$/  nvml: {}/; s/^/    /' deploy/otlp/agent.yaml
} >deploy/kubernetes/operator.yaml
