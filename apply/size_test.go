// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSizes: an oversized object is reported with size and limit before it is sent; others are
// sent.
func TestSizes(t *testing.T) {
	f := newFixture(t)
	object := func(kind, field, value string) *unstructured.Unstructured {
		o := f.object(`{apiVersion: v1, kind: ` + kind + `, metadata: {name: large, namespace: NS}}`)
		require.NoError(t, unstructured.SetNestedField(o.Object, value, field, "key"))
		return o
	}
	plain := func(n int) string { return strings.Repeat("x", n) }
	encoded := func(n int) string { return base64.StdEncoding.EncodeToString([]byte(plain(n))) }
	for name, c := range map[string]struct {
		kind, field string
		value       func(int) string
	}{
		"ConfigMap":               {"ConfigMap", "data", plain},
		"ConfigMap, binary":       {"ConfigMap", "binaryData", encoded},
		"Secret":                  {"Secret", "data", encoded},
		"Secret, not yet encoded": {"Secret", "stringData", plain},
	} {
		t.Run(name, func(t *testing.T) {
			f.mustApply(f.set(object(c.kind, c.field, c.value(1<<20))))
			for _, do := range []func(Set) error{
				func(s Set) error { _, err := f.apply(s); return err },
				func(s Set) error { _, err := f.e.Plan(f.ctx, f.c, s, f.inv, ApplyOptions{}); return err },
			} {
				var err error
				counts := f.requests(func() { err = do(f.set(object(c.kind, c.field, c.value(1<<20+1)), f.configMap("small", "x"))) })
				var e *ObjectError
				require.ErrorAs(t, err, &e)
				assert.Equal(t, ReasonInvalid, e.Reason)
				assert.Equal(t, "cluster test: "+c.kind+" "+f.ns+"/large: apply: Invalid: its values have 1.00 MiB (1048577 bytes), and a "+c.kind+
					" may have at most 1.00 MiB (1048576 bytes) (make it smaller, or split it into several objects)", e.Error())
				assert.LessOrEqual(t, counts["patch-apply"], 3, "the object is not sent: only the other one and the inventory")
			}
			assert.True(t, f.exists(f.configMap("small", "")), "siblings are applied")
		})
	}
	for name, size := range map[string]int{"refused by etcd": 1800 << 10, "not sent to etcd": 2 << 20} {
		t.Run(name, func(t *testing.T) {
			o := f.deployment("large", 1)
			containers := nested(o, "spec", "template", "spec", "containers").([]any)
			containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "LARGE", "value": plain(size)}}
			_, err := f.apply(f.set(o))
			assert.Equal(t, ReasonInvalid, ReasonOf(err))
			assert.Regexp(t, `Deployment \S+/large: apply: Invalid: it has (1\.76|2\.00) MiB \(\d+ bytes\) as JSON, and the storage of the API server accepts at most 1\.50 MiB`, err)
		})
	}
}

// TestInOrderStopsAfterFailure: if an object fails, objects that refer to it are not tried, and
// nothing is pruned.
func TestInOrderStopsAfterFailure(t *testing.T) {
	f := newFixture(t)
	role := f.object(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: user, namespace: NS}}`)
	set := f.set(f.configMap("old", "x"))
	set.InOrder = true
	f.mustApply(set)
	set = f.set(f.configMap("Not_A_Name", "x"), role)
	set.InOrder = true
	r, err := f.apply(set)
	assert.Equal(t, ReasonInvalid, ReasonOf(err))
	assert.Equal(t, map[string]Action{"ConfigMap/Not_A_Name": Failed, "Deployment/user": Skipped}, actions(r))
	assert.True(t, f.exists(f.configMap("old", "")))
	assert.Contains(t, f.inventory(), "ConfigMap/old")
}
