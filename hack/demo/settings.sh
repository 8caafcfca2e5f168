# Where things are that the demonstration is made of. To be sourced, in the folder of the repository.
root="$PWD"
pergola="$root/bin/pergola" local="$root/bin/pergola-local" demo="$root/bin/pergola-demo"
work="$root/.local/demo"
landscape="$work/landscape"
remote="$work/git/landscape.git"
export KUBECONFIG="$root/.local/kubeconfig"
# Its own, whatever the user has for other landscapes: no other key opens what is in landscapes/local.
export SOPS_AGE_KEY_FILE="$root/landscapes/local/.sops/age.key"
unset SOPS_AGE_KEY

# Ports of this machine at which the operator and the gardenlet are reached.
operator_port="${DEMO_OPERATOR_PORT:-18081}" receiver_port="${DEMO_RECEIVER_PORT:-19292}" gardenlet_port="${DEMO_GARDENLET_PORT:-18082}"
seed_account="garden/gardenlet-local" # of the chart, role gardenlet-access

# lives tells whether pods run for real.
lives() { { "$local" status -o json || true; } | grep -q '"living": true'; }
