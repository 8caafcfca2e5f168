// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRequestsForCreateChangeAndNothing(t *testing.T) {
	f := newFixture(t)
	objects := func(value string) Set {
		return f.set(f.configMap("a", value), f.configMap("b", "x"), f.deployment("d", 1))
	}

	r := f.mustApply(objects("1"))
	assert.Equal(t, map[string]Action{"ConfigMap/a": Created, "ConfigMap/b": Created, "Deployment/d": Created}, actions(r))
	assert.True(t, r.Complete)

	// No request for unchanged objects, neither now nor in a new process.
	assert.Empty(t, f.requests(func() { r = f.mustApply(objects("1")) }))
	assert.Equal(t, 3, r.Count(Unchanged))
	f.c = f.cluster()
	f.e = newEngine(Options{})
	f.inv = NewConfigMapInventory(f.c, f.ns, "inventory", nil)
	counts := f.requests(func() { r = f.mustApply(objects("1")) })
	assert.Equal(t, 3, r.Count(Unchanged))
	assert.Zero(t, counts.Writes())
	assert.Zero(t, counts["get"])
	assert.Equal(t, 3, counts["list"], "ConfigMaps, Deployments, autoscalers: %v", counts)

	// One PATCH for the object that changed, one for the inventory.
	counts = f.requests(func() { r = f.mustApply(objects("2")) })
	assert.Equal(t, RequestCounts{"patch-apply": 2}, counts)
	assert.Equal(t, map[string]Action{"ConfigMap/a": Configured, "ConfigMap/b": Unchanged, "Deployment/d": Unchanged}, actions(r))
	assert.Equal(t, "2", nested(f.get(f.configMap("a", "")), "data", "key"))

	f.eventually("one watch a kind", func() bool { return f.c.Requests()["watch"] == 3 })
}
