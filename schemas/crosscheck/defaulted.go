// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// profileAndSeedLister gives mutations the cloud profiles and Seeds: the sources of Shoot fields
// that rules check and the API can reject.
type profileAndSeedLister struct{ *objectIndex }

// Get implements mutation.ObjectLister.
func (f profileAndSeedLister) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if kind != kindCloudProfile && kind != kindNamespacedProfile && kind != kindSeed {
		return nil
	}
	in := f.objectsByID[identity{kind, namespace, name}] // filled records the question
	if in == nil {
		return nil
	}
	return in.Content()
}

// List implements mutation.ObjectLister.
func (f profileAndSeedLister) List(schema.GroupKind) []*unstructured.Unstructured { return nil }

// shootMutations returns the values that the API fills in for the current Shoot from its profile
// and Seed.
func (c *checker) shootMutations() mutation.Result {
	id, _ := profileReference(c.object(), c.namespace())
	c.recordQuery(landscapeQuery{topicProfile, id})
	c.recordQuery(landscapeQuery{topicContent, identity{kind: kindSeed, name: textAt(c.object(), "spec", "seedName")}})
	if c.fillInput == c.input {
		return c.fillResult
	}
	c.fillInput, c.fillResult = c.input, mutation.Result{}
	shoot := &gardencorev1beta1.Shoot{}
	if !toTyped(c.input.Content(), shoot) {
		return c.fillResult
	}
	var old *gardencorev1beta1.Shoot
	if c.input.HasOld() {
		before, _ := c.oldCompletedShoot()
		old = &gardencorev1beta1.Shoot{}
		if !toTyped(before, old) {
			return c.fillResult
		}
	}
	if c.mutations == nil {
		c.mutations = mutation.New(profileAndSeedLister{c.objectIndex}, c.Now)
	}
	c.fillResult = c.mutations.MutateShoot(shoot, old)
	return c.fillResult
}

// checkedFieldPattern are the fields that the API fills in from other objects and rules check.
var checkedFieldPattern = regexp.MustCompile(`^spec\.(networking\.(pods|services)|kubernetes\.version|provider\.workers\[\d+\]\.(kubernetes\.version|machine\.image(\..*)?))$`)

// immutableNetworkFieldPattern are the checkedFieldPattern that never change after the Shoot's
// creation.
var immutableNetworkFieldPattern = regexp.MustCompile(`^spec\.networking\.(pods|services)$`)

// checkCompletedShoot applies the single-object rules to the Shoot with the filled-in values and
// reports only additional findings. An unchanged Shoot keeps its unknown Kubernetes version if the
// time decides about it.
func (c *checker) checkCompletedShoot() {
	if c.Rules == nil {
		return
	}
	changes := filterChanges(c.shootMutations(), checkedFieldPattern)
	if _, same := c.input.AsNew(); same {
		changes = c.withoutTimedVersion(changes)
	}
	former, before := c.oldCompletedShoot()
	if len(changes.Changes)+len(before) == 0 {
		return
	}
	plain := *c.input
	plain.Object, plain.Lazy, plain.Positions = c.input.Content(), nil, nil
	known := findingKeys(c.Rules(plain))
	found, ok := c.runRulesWith(plain, changes, former)
	if !ok {
		return
	}
	var reasons []string
	for _, change := range changes.Changes {
		reasons = append(reasons, fmt.Sprintf("%s is %v: %s", change.Field, change.Value, change.Reason))
	}
	for _, change := range before {
		reasons = append(reasons, fmt.Sprintf("%s was unset before, so it is %v: %s", change.Field, change.Value, change.Reason))
	}
	var lasting map[findingKey]bool // findings for every possible version
	for _, v := range found {
		if known[findingKey{v.Field, v.Rule}] {
			continue
		}
		if lasting == nil {
			without, _ := c.runRulesWith(plain, c.withoutTimedVersion(changes), former)
			lasting = findingKeys(without)
		}
		v.NewOnly = !lasting[findingKey{v.Field, v.Rule}]
		v.Message += "; the API fills in unset fields (" + strings.Join(reasons, "; ") + ")"
		if c.input.Positions != nil {
			p := c.input.Positions.Position(v.Field)
			v.File, v.Line, v.Column = p.File, p.Line, p.Column
		}
		c.findings = append(c.findings, v)
	}
}

// runRulesWith returns the findings about a Shoot with the changes and its previous revision, or
// false if its structure is broken.
func (c *checker) runRulesWith(in schemas.Input, changes mutation.Result, former *unstructured.Unstructured) ([]schemas.Violation, bool) {
	in.Object = in.Object.DeepCopy()
	if changes.ApplyTo(in.Object) != nil {
		return nil, false
	}
	if former != nil {
		in.Old, in.OldLazy = former, nil
	}
	return c.Rules(in), true
}

func findingKeys(found []schemas.Violation) map[findingKey]bool {
	out := map[findingKey]bool{}
	for _, v := range found {
		out[findingKey{v.Field, v.Rule}] = true
	}
	return out
}

// withoutTimedVersion drops a Kubernetes version whose minor version depends on the time.
func (c *checker) withoutTimedVersion(result mutation.Result) mutation.Result {
	const field = "spec.kubernetes.version"
	if textAt(c.object(), strings.Split(field, ".")...) != "" {
		return result
	}
	return mutation.Result{Changes: slices.DeleteFunc(slices.Clone(result.Changes), func(change mutation.Change) bool { return change.Field == field })}
}

// filterChanges returns the changes of matching fields.
func filterChanges(result mutation.Result, fields *regexp.Regexp) mutation.Result {
	return mutation.Result{Changes: slices.DeleteFunc(slices.Clone(result.Changes), func(change mutation.Change) bool { return !fields.MatchString(change.Field) })}
}

// oldSeedLister gives mutations the Seeds before the change.
type oldSeedLister struct{ *objectIndex }

// Get implements mutation.ObjectLister.
func (f oldSeedLister) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	in := f.objectsByID[identity{kind, namespace, name}] // formerly asks
	if kind != kindSeed || in == nil || !in.HasOld() {
		return nil
	}
	return in.OldContent()
}

// List implements mutation.ObjectLister.
func (f oldSeedLister) List(schema.GroupKind) []*unstructured.Unstructured { return nil }

// oldCompletedShoot returns the previous revision of the Shoot, with the values that the API took
// from its Seed, or nil for a new Shoot. Nothing is filled in without a Seed in both revisions.
func (c *checker) oldCompletedShoot() (*unstructured.Unstructured, []mutation.Change) {
	if !c.input.HasOld() {
		return nil, nil
	}
	was, old := c.input.OldContent(), &gardencorev1beta1.Shoot{}
	if textAt(was.Object, "spec", "networking", "pods") != "" && textAt(was.Object, "spec", "networking", "services") != "" {
		return was, nil
	}
	c.recordQuery(landscapeQuery{topicOldContent, identity{kind: kindSeed, name: textAt(was.Object, "spec", "seedName")}})
	if c.oldShootInput == c.input {
		return c.oldShoot, c.oldShootChanges
	}
	c.oldShootInput, c.oldShoot, c.oldShootChanges = c.input, was, nil
	if !toTyped(was, old) {
		return was, nil
	}
	filled := filterChanges(mutation.New(oldSeedLister{c.objectIndex}, c.Now).MutateShoot(old, nil), immutableNetworkFieldPattern)
	if full := was.DeepCopy(); len(filled.Changes) > 0 && filled.ApplyTo(full) == nil {
		c.oldShoot, c.oldShootChanges = full, filled.Changes
	}
	return c.oldShoot, c.oldShootChanges
}

// findingKey is the key of a finding.
type findingKey struct{ field, rule string }

// reportRefusals reports the API's refusals that belong to the current rule. An unchanged Shoot
// keeps the version that the API chose for it.
func (c *checker) reportRefusals() {
	_, same := c.input.AsNew()
	for _, problem := range c.shootMutations().Problems {
		if problem.Rule != c.currentRule.ID || problem.NewOnly && same {
			continue
		}
		c.report(problem.Field, problem.Type, "%s", problem.Message)
		c.findings[len(c.findings)-1].NewOnly = problem.NewOnly
	}
}

// checkIncompleteVersion reports an incomplete Kubernetes version if the cloud profile is external.
func (c *checker) checkIncompleteVersion() {
	version := textAt(c.object(), "spec", "kubernetes", "version")
	id, _ := profileReference(c.object(), c.namespace())
	if version != "" && mutation.IsIncompleteVersion(version) && c.shootProfile() == nil && c.isExternal(id) {
		c.report("spec.kubernetes.version", schemas.TypeInvalid, "%q is not a full version, and the landscape has no cloud profile to complete it; write the full version", version)
	}
}
