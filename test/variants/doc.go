// Package variants runs control planes for real and looks whether they do what their declarations
// say: audit events appear, Secrets are encrypted in etcd, tokens are accepted and refused, pods
// are not admitted, members of etcd come back. A golden file shows a flag; here the flag is in a
// process. There is nothing in it but tests.
//
// One landscape has all variants: landscapes/local with what is in testdata/landscape over it. Its
// Garden and its Shoots are converged once, by `pergola apply`, on local clusters whose pods run
// (hack/local); the tests look at what came of it. Where the machine forbids namespaces, they are
// left out.
//
// The environment variable PERGOLA_LOCAL names the command that starts the clusters; without it, it
// is built. For work on these tests PERGOLA_VARIANTS names a folder where the clusters stay up from
// one run to the next; they are yours to take down (local clean --dir).
package variants
