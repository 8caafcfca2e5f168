# hack/demo.sh on machines that run pods: operator and gardenlet are pods of the chart, virtual
# garden and Shoot are the rendered control planes. To be sourced.

# An image that the local clusters know: bin/pergola.
image=registry.example.org/pergola
# repeated is set after an earlier demonstration: until the operator is back, nothing syncs.
repeated=""

# begin stops the last operator and gardenlet: their landscape is first applied from here.
begin() {
  local role context
  for role in operator gardenlet; do
    context=pergola-runtime
    [ $role = operator ] || context=pergola-local
    if "$demo" runs $context garden/pergola-$role; then
      echo "Stopping the $role of the last demonstration; it starts again below."
      repeated=yes
      "$pergola" install --role $role --context $context --set image.repository=$image --set replicas=0 --set gardenlet.seed=local > /dev/null
    fi
  done
}

# control_planes checks that they run, and makes a context for each.
control_planes() {
  say "The rendered pods run: the virtual garden and the Shoot have API servers, and kubectl reaches them with generated credentials"
  if [ -z "$repeated" ]; then
    settled
  fi
  mkdir -p "$work/access"
  "$demo" reach pergola-runtime garden/gardener-internal https://api.virtual-garden.local.gardener.cloud pergola-virtual "$work/access/virtual.kubeconfig"
  "$demo" reach pergola-local shoot--local--local/gardener-internal https://api.local.local.external.local.gardener.cloud pergola-shoot "$work/access/shoot.kubeconfig"
  export KUBECONFIG="$root/.local/kubeconfig:$work/access/virtual.kubeconfig:$work/access/shoot.kubeconfig"
  "$demo" namespace pergola-virtual from-the-demonstration
  "$demo" namespace pergola-shoot from-the-demonstration
  [ -z "$repeated" ] || echo "The operator is not ready yet, as expected: it starts again below."
  differs "$pergola" status "$landscape" --live
}

# event_ttl shows a flag in the API server processes of a control plane (garden or shoot).
event_ttl() {
  say "$3"
  local pods=kube-apiserver-
  [ "$1" = shoot ] || pods=virtual-garden-kube-apiserver-
  "$local" run -- "$demo" flag $pods event-ttl "${2}0m0s"
}

chart_values() { echo "image: {repository: $image}"; }

start_operator() {
  waiting "until its pod is ready" "$pergola" install --context pergola-runtime --set image.repository=$image
}

serve_repository() {
  DEMO_RECEIVER_PORT="$receiver_port" hack/demo/serve.sh
  url="http://169.254.1.1:8080/${remote##*/}"
}

start_gardenlet() {
  "$demo" secret pergola-local garden/gardenlet-garden kubeconfig="$work/gardenlet-garden.kubeconfig"
  waiting "until its pod is ready" "$pergola" install --role gardenlet --context pergola-local --values "$work/chart.yaml" --set gardenlet.seed=local
}

go_on() {
  cat <<EOT

The clusters stay up, with operator and gardenlet as pods. Continue with:

  export KUBECONFIG=$KUBECONFIG SOPS_AGE_KEY_FILE=$SOPS_AGE_KEY_FILE
  $pergola status $landscape --live --components
  $pergola diff $landscape --live
  $pergola history local --context pergola-runtime   # also: sync, suspend, resume, rollback, tree
  git -C $landscape push demo main                   # after a change and a commit in that folder
  $local logs runtime garden/PODNAME                 # any kubectl works, none is needed: kubectl logs, exec, port-forward, too
  kubectl --context pergola-runtime -n garden get pods
  kubectl --context pergola-virtual get projects,seeds,shoots -A
  kubectl --context pergola-shoot get namespaces     # the Shoot's own API server
  make -C $root local-status                         # also: local-down, local-clean
EOT
}
