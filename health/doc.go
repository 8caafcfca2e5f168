// Package health judges objects: one object in, one Verdict out, nothing else. It reads no cluster and no clock.
//
// The rules are those of Gardener's resource manager and care controllers, one file per kind; Check picks the rule of
// an object's kind. Kinds without a rule are healthy by existing, as upstream has it. Next to `healthy` and
// `progressing`, which Gardener's rules decide, a Verdict carries a `status` in the terms of kstatus; KStatus and Argo
// are what those two tools would say.
//
// Not here: conditions and their thresholds (health/condition), waiting and watching (apply), reading pods.
package health
