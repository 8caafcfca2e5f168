// Package health judges objects: one object in, one Verdict out, nothing else. It reads no cluster
// and no clock.
//
// The rules are those of Gardener's resource manager and care controllers, one file per kind; Check
// picks the rule of an object's kind. Kinds without a rule are healthy by existing, as upstream has
// it; JudgeAllKinds has them judged in the terms of kstatus instead. Rules from outside (WithRules,
// package custom) go before all of these. Next to `healthy` and `progressing`, a Verdict carries a
// `status` in the terms of kstatus, for every kind and whatever the options; KStatus and Argo are
// what those two tools would say.
//
// Given what stands around an object that is not well (WithAround: pods, ReplicaSets, claims,
// events; NeedOf says what is worth reading), the verdict names the one cause that tells most
// (cause.go). Texts of others are bounded there and cleaned of what looks like a secret (text.go).
//
// A Deployment whose containers end again and again is not healthy although they run in between
// (crashing.go): MayBeCrashing says when its pods are worth reading for that, WithPods and At tell
// the rule what it needs.
//
// Not here: conditions and their thresholds (health/condition), the language of rules from outside
// (health/custom), waiting and watching (apply), reading pods and events (controllers).
package health
