// Package access finds the API servers that Pergola itself makes: the virtual garden, whose access
// is in the runtime cluster, and those of Shoots, whose access is on their seed.
//
// Each has a Secret gardener-internal (upstream's name) with a kubeconfig in the namespace of its
// control plane. Whoever reconciles the Garden or Shoot writes it (Publish), as a copy under a
// fixed name of what the secrets manager has made; who only uses it may be allowed to get that one
// Secret and nothing else. Where somebody else has written one, it is used as it is.
//
// A connection of Late is there before its Secret is: it reads the Secret when the first request is
// sent, remembers it, and reads it again when the API server does not take it any more. So one
// connection gets through the making of a virtual garden, and through rotations.
//
// Own is the other way round: access that a process was given once in a Secret, and renews itself,
// as a gardenlet does.
//
// What does not live here: which certificates there are (the catalogue asks the secrets manager for
// them), and access that somebody declares.
package access
