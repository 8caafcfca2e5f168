# hack/demo.sh on machines that cannot run pods, so that kwok plays them. A cluster replaces the
# virtual garden's API server. Operator and gardenlet are processes with the tokens of their
# accounts. The API servers of Shoots do not answer. To be sourced.

begin() { "$root/hack/stop-demo.sh"; }

control_planes() {
  say "The rendered pods are only played here"
  echo "No process of a control plane runs (PODS=play, or this machine forbids namespaces, as reported at the start of the clusters). A cluster"
  echo "replaces the virtual garden's API server, and the API server of the Shoot does not answer. Operator and gardenlet are processes beside"
  echo "the clusters. Everything else is the same as with running pods."
}

event_ttl() { :; }

# Images cannot run here: the chart is installed without pods.
chart_values() { printf '%s\n' "image: {repository: registry.example.org/pergola}" "replicas: 0"; }

start_operator() {
  chart_values > "$work/chart.yaml"
  run "$pergola" install --context pergola-runtime --values "$work/chart.yaml"
  operator_process
}

# operator_process starts the operator beside the clusters, as its account.
operator_process() {
  "$demo" identity pergola-runtime garden/pergola-operator "$work/operator.kubeconfig"
  operator=("$pergola" operator --kubeconfig "$work/operator.kubeconfig" --cache-dir "$work/cache" --allow-file-sources --log-format text
    --bind-address 127.0.0.1 --health-port $operator_port --metrics-port -1 --receiver-port $receiver_port)
  "${operator[@]}" > "$work/operator.log" 2>&1 < /dev/null &
  echo $! > "$work/operator.pid"
  "$demo" ready http://127.0.0.1:$operator_port/readyz
}

serve_repository() { url="file://$remote"; }

start_gardenlet() {
  run "$pergola" install --role gardenlet --context pergola-local --values "$work/chart.yaml" --set gardenlet.seed=local
  gardenlet_process
}

# gardenlet_process starts the gardenlet beside the clusters, as its account.
gardenlet_process() {
  "$demo" identity pergola-local garden/pergola-gardenlet "$work/gardenlet.kubeconfig"
  gardenlet=("$pergola" gardenlet --seed local --kubeconfig "$work/gardenlet.kubeconfig" --garden-kubeconfig "$work/gardenlet-garden.kubeconfig" --log-format text
    --bind-address 127.0.0.1 --health-port $gardenlet_port --metrics-port -1)
  "${gardenlet[@]}" > "$work/gardenlet.log" 2>&1 < /dev/null &
  echo $! > "$work/gardenlet.pid"
  "$demo" ready http://127.0.0.1:$gardenlet_port/readyz
}

# again restarts the two processes that local-down has stopped. Their tokens may have expired.
again() {
  if [ -f "$work/operator.kubeconfig" ] && ! [ -f "$work/operator.pid" ]; then
    echo "Starting the operator of the demonstration again."
    operator_process
  fi
  if [ -f "$work/gardenlet.kubeconfig" ] && ! [ -f "$work/gardenlet.pid" ]; then
    echo "Starting the gardenlet of the demonstration again."
    "$demo" identity pergola-virtual "$seed_account" "$work/gardenlet-garden.kubeconfig"
    gardenlet_process
  fi
}

go_on() {
  cat <<EOT

The clusters, the operator and the gardenlet stay up (logs: .local/demo/operator.log, gardenlet.log). Continue with:

  export KUBECONFIG=$KUBECONFIG SOPS_AGE_KEY_FILE=$SOPS_AGE_KEY_FILE
  $pergola status $landscape --live --components
  $pergola diff $landscape --live
  $pergola history local --context pergola-runtime   # also: sync, suspend, resume, rollback, tree
  git -C $landscape push demo main                   # after a change and a commit in that folder
  kubectl --context pergola-runtime get landscapes,managedresources -A      # any kubectl works, none is needed
  make -C $root local-status                         # also: local-down, local-clean
  $root/hack/stop-demo.sh                            # stops operator and gardenlet; start each again in a terminal of its own:
  ${operator[*]}
  ${gardenlet[*]}
EOT
}
