#!/usr/bin/env bash
# What the chart renders, on the API server of every supported minor version of Kubernetes: server-side apply as a dry run, with warnings as
# errors. The server checks every field, and compiles the expressions of policies, webhooks and CRDs.
#	CHART_VERSIONS="1.37.0 1.35.4"   only these
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/control-plane.sh
. tests/e2e/lib/control-plane.sh
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh
# shellcheck source=tests/e2e/components/versions
. tests/e2e/components/versions

root=$(mktemp -d /tmp/pinfold-chart-versions-XXXXXX)
cp=
trap '[ -z "$cp" ] || cp_stop "$cp"; rm -rf "$root"' EXIT
helm=$("$e2e_build" helm)/bin/helm
export HELM_CACHE_HOME=$root/helm/cache HELM_CONFIG_HOME=$root/helm/config HELM_DATA_HOME=$root/helm/data

template() { "$helm" template pinfold deploy/chart --namespace pinfold --kube-version "$version" "$@"; }
apply() { kubectl apply --server-side --dry-run=server --warnings-as-errors --force-conflicts -f -; }
accepts() { template "$@" | apply; }
misspelt() { template | sed 's/failurePolicy:/failurePolcy:/' | apply; }
every_option=(--set 'topology.enabled=true,webhook.pools=true,webhook.failurePolicy=Fail,networkPolicy.nodeCIDRs={192.0.2.0/24}'
    --set 'agent.apiServer=https://api.example:6443,image.pullSecrets[0].name=registry,webhook.tolerations[0].operator=Exists')

for version in ${CHART_VERSIONS:-$KUBERNETES_OLD_VERSION $KUBERNETES_MIDDLE_VERSION $KUBERNETES_VERSION}; do
    cp=$root/$version
    CP_VERSION=$version cp_start "$cp"
    for namespace in pinfold pinfold-agent; do # a dry run creates none
        kubectl create namespace $namespace >/dev/null
    done
    ok "$version: the defaults are accepted, without a warning" accepts
    ok "$version: every option" accepts "${every_option[@]}"
    for distribution in k3s rke2 microk8s talos microshift kind; do
        ok "$version: distribution $distribution" accepts --set distribution=$distribution
    done
    refused "$version: a misspelt field is refused" failurePolcy misspelt
    cp_stop "$cp"
    cp=
done
tap_end
