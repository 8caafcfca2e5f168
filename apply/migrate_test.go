package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestFieldsOfFormerManagersAreTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		manager string
		label   string // puts the object into the live cache
		force   bool
	}{
		"resource-manager, cached": {"gardener-resource-manager", "gardener", false},
		"kubectl, not cached":      {"kubectl-create", "nobody", false},
		"gardenlet, forced":        {"gardenlet", "nobody", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			former := f.configMap("c", "old")
			former.SetLabels(map[string]string{GardenerKeys().ManagedByLabel: c.label})
			former.Object["data"].(map[string]any)["stale"] = "x"
			_, err := f.resource(former).Create(f.ctx, former, metav1.CreateOptions{FieldManager: c.manager})
			require.NoError(t, err)

			set := f.set(f.configMap("c", "new"))
			set.Force = c.force
			r := f.mustApply(set)
			assert.Equal(t, Adopted, r.Objects[0].Action)
			live := f.get(former)
			assert.Equal(t, map[string]any{"key": "new"}, nested(live, "data"), "the stale field is gone")
			for _, m := range live.GetManagedFields() {
				assert.NotEqual(t, c.manager, m.Manager)
			}
			assert.Empty(t, f.requests(func() { f.mustApply(set) }))

			// Later edits by the same tool are not taken over.
			f.patch(former, c.manager, `{"data":{"extra":"by hand"}}`)
			set.Objects[0] = f.configMap("c", "newer")
			f.mustApply(set)
			assert.Equal(t, map[string]any{"key": "newer", "extra": "by hand"}, nested(f.get(former), "data"))
		})
	}
}

func TestManagedFieldsOfAVersionThatIsGone(t *testing.T) {
	f := newFixture(t)
	crd := f.widgets()
	f.mustApply(f.set(crd, f.widget("w")))
	// As left behind by an API version that is not served any more.
	_, err := f.resource(f.widget("w")).Patch(f.ctx, "w", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/metadata/managedFields/0/apiVersion","value":"`+f.ns+`.example.com/v1beta1"}]`), patchAs("somebody"))
	require.NoError(t, err)
	bigger := f.widget("w")
	bigger.Object["spec"] = map[string]any{"size": int64(2)}
	f.mustApply(f.set(crd, bigger))
	assert.EqualValues(t, 2, nested(f.get(bigger), "spec", "size"))
}
