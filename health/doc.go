// SPDX-License-Identifier: Apache-2.0

// Package health judges objects: it makes a Verdict from one object and reads no cluster and no
// clock.
//
// The rules are those of Gardener's resource manager and care controllers, one file per kind; Check
// picks the rule by kind. As in upstream, kinds without a rule are healthy if they exist;
// JudgeAllKinds judges them by kstatus instead. Custom rules (WithRules, package custom) precede
// all of these. Besides `healthy` and `progressing`, a Verdict has a kstatus `status` for every
// kind and all options. KStatus and Argo return the results of those two tools.
//
// Given the objects related to an unhealthy object (WithRelatedObjects: pods, ReplicaSets, claims,
// events; see NeededLists), the verdict has the most informative cause (cause.go). Texts of others
// are bounded and cleaned of likely secrets (text.go).
//
// A Deployment with repeatedly crashing containers is not healthy, although they run in between
// (crashloop.go). CanBeCrashing reports whether its pods are worth reading; WithPods and At pass
// the rule's inputs.
//
// Other packages have conditions and their thresholds (health/condition), the language of custom
// rules (health/custom), waiting and watching (apply), and read pods and events (controllers).
package health
