// Package admission sends pods to living nodes: a MutatingAdmissionPolicy of the API server gives
// each pod whose images are all executables of the machine the node selector and the toleration of
// those nodes. Other pods never get there, since the nodes have a taint.
//
// It also takes runAsUser away, since there is one user, and where there is one such node it makes
// a wish of what demands to be spread over several.
//
// The rest (which node, zones, spreading) is the scheduler's. A pod that is to be played although
// it could run has the annotation local.pergola.dev/play: "true"; so is one that is told to fail,
// by local.pergola.dev/never-ready.
package admission
