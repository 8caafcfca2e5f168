// Package stages holds the kwok Stages that play what cannot run without containers (kubelets, etcd
// operators, load balancers, volumes), and has them played. Package extensions plays provider
// extensions.
//
// The Stages are the YAML files of this folder. A Stage whose annotation local.pergola.dev/kinds
// lists several kinds stands for one Stage each; $(kind) in it is the kind, $(name) the kind in
// lower case. kwok draws lots between Stages that match at once, so no two may; and it looks at an
// object again after each patch, so a Stage makes one patch, the one that makes it match no longer.
//
// kwok ends when the kind of a Stage is not served, and CRDs come later than kwok. So two of them
// run: one with the Stages of core kinds, started once; and one with the Stages of the other kinds
// that are served by now, which the Keeper starts anew when those change. kwok's own Stage API
// would not do: it looks at an object when the first Stage of its kind arrives, and not again when
// the next one does.
package stages
