// Package secrets is the secrets manager: it generates CAs, certificates, keys, tokens and
// kubeconfigs as Secrets of one namespace, finds them again, renews and rotates them, with the
// names, labels and data keys of Gardener's (pkg/utils/secrets/manager), so that an existing
// landscape's CAs, keys and tokens are taken over as they are.
//
// Requests are data that components declare in CUE (Config). Values are Value, which never prints
// itself; what rendering gets to know of a secret is a Fact, which holds none.
//
// Not here: which secrets a component wants (the catalogue), and the phases of a rotation
// (controllers).
package secrets
