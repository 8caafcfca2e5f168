# Paths and ports of the demonstration. To be sourced in the root of the repository.
root="$PWD"
pergola="$root/bin/pergola" local="$root/bin/pergola-local" demo="$root/bin/pergola-demo"
work="$root/.local/demo"
landscape="$work/landscape"
remote="$work/git/landscape.git"
export KUBECONFIG="$root/.local/kubeconfig"
# The landscape's own key, not the user's: no other key decrypts landscapes/local.
export SOPS_AGE_KEY_FILE="$root/landscapes/local/.sops/age.key"
unset SOPS_AGE_KEY

# Ports of this machine for the operator and the gardenlet.
operator_port="${DEMO_OPERATOR_PORT:-18081}" receiver_port="${DEMO_RECEIVER_PORT:-19292}" gardenlet_port="${DEMO_GARDENLET_PORT:-18082}"
seed_account="garden/gardenlet-local" # created by the chart, role gardenlet-access

# lives reports whether pods run, and are not played.
lives() { { "$local" status -o json || true; } | grep -q '"living": true'; }
