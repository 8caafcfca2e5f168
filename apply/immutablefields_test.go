// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// TestImmutableFieldsKeepLiveValues: all other fields are applied, and the outcome names those that
// cannot change. Upstream reports nothing.
func TestImmutableFieldsKeepLiveValues(t *testing.T) {
	const stateful = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s, namespace: NS}
spec:
  serviceName: s
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: "IMAGE"}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: SIZE}}}}]
`
	const service = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS, labels: {image: "IMAGE"}}, spec: {clusterIP: SIZE, ports: [{port: 80}]}}`
	for name, c := range map[string]struct{ text, first, second, path string }{
		"claim templates": {stateful, "1Gi", "2Gi", "spec.volumeClaimTemplates"},
		"cluster IP":      {service, "10.0.0.77", "10.0.0.78", "spec.clusterIP"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			made := func(size, image string) *unstructured.Unstructured {
				return f.object(strings.NewReplacer("SIZE", size, "IMAGE", image).Replace(c.text))
			}
			f.mustApply(f.set(made(c.first, "one")))
			set := f.set(made(c.second, "two"))
			item, err := f.planOne(set)
			require.NoError(t, err)
			assert.Equal(t, change.Change, item.Action)

			r := f.mustApply(set)
			assert.Equal(t, Configured, r.Objects[0].Action)
			assert.Equal(t, []string{c.path}, r.Objects[0].ImmutableFields)
			assert.Equal(t, c.path+" cannot change on a live object and keeps its value, which differs from the declaration", r.Objects[0].Message)
			text, err := f.get(set.Objects[0]).MarshalJSON()
			require.NoError(t, err)
			assert.Contains(t, string(text), c.first)
			assert.NotContains(t, string(text), c.second)
			assert.Contains(t, string(text), "two")

			assert.Empty(t, f.requests(func() {
				r := f.mustApply(set)
				assert.Equal(t, Unchanged, r.Objects[0].Action)
				assert.Equal(t, []string{c.path}, r.Objects[0].ImmutableFields, "it is told as long as it is so")
			}))

			// If only immutable fields differ, the plan says so. The first Service holds the
			// address.
			require.NoError(t, f.resource(set.Objects[0]).Delete(f.ctx, "s", metav1.DeleteOptions{}))
			f2 := newFixture(t)
			f2.mustApply(f2.set(f2.object(strings.NewReplacer("SIZE", c.first, "IMAGE", "one").Replace(c.text))))
			item, err = f2.planOne(f2.set(f2.object(strings.NewReplacer("SIZE", c.second, "IMAGE", "one").Replace(c.text))))
			require.NoError(t, err)
			assert.Equal(t, change.Keep, item.Action)
			assert.Contains(t, item.Reason, c.path)
		})
	}
}

// TestAdoptedObjectsKeepWhatTheServerSet: we adopt claims and Jobs of upstream's resource-manager
// and preserve the fields that the server set.
func TestAdoptedObjectsKeepWhatTheServerSet(t *testing.T) {
	for name, c := range map[string]struct{ theirs, ours string }{
		"claim": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, namespace: NS, labels: {stale: "1"}}, spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, namespace: NS}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`},
		"job": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: NS, labels: {stale: "1"}}, spec: {template: {metadata: {labels: {app: x, old: x}}, spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: NS}, spec: {template: {metadata: {labels: {app: x}}, spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}`},
	} {
		for _, cached := range []string{"gardener", "nobody"} {
			t.Run(name+" "+cached, func(t *testing.T) {
				f := newFixture(t)
				theirs := f.object(c.theirs)
				theirs.SetLabels(map[string]string{"stale": "1", gardenerKeys().ManagedByLabel: cached})
				f.createBy(takeoverManagerName, theirs)
				before := f.get(theirs)
				set := f.set(f.object(c.ours))
				set.Force = false
				r := f.mustApply(set)
				assert.Equal(t, Adopted, r.Objects[0].Action)
				after := f.get(theirs)
				assert.Equal(t, nested(before, "spec"), nested(after, "spec"))
				assert.NotContains(t, after.GetLabels(), "stale")
				for _, m := range after.GetManagedFields() {
					assert.NotEqual(t, takeoverManagerName, m.Manager)
				}
				assert.Empty(t, f.requests(func() { f.mustApply(set) }))
				// A later change still sends the adopted fields.
				changed := f.object(c.ours)
				changed.SetLabels(map[string]string{"new": "1"})
				f.mustApply(f.set(changed))
				assert.Equal(t, nested(before, "spec"), nested(f.get(theirs), "spec"))
				assert.Contains(t, f.get(theirs).GetLabels(), "new")
			})
		}
	}
}
