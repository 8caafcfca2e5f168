// Package stages holds the kwok Stages that play what cannot run without containers (kubelets, etcd
// operators, provider extensions, load balancers, volumes), and keeps them in a cluster.
//
// The Stages are the YAML files of this folder. A Stage whose annotation local.pergola.dev/kinds lists
// several kinds stands for one Stage each; $(kind) in it is the kind, $(name) the kind in lower case.
//
// kwok runs with its Stage API enabled, so Stages are objects of the cluster. It looks up the resource
// of a new Stage once, and gives up until another Stage changes when the resource is not there. CRDs
// come later than kwok, so the Keeper adds the Stage of a kind when the API server serves the kind, and
// removes it when it no longer does.
package stages
