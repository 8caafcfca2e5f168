// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// copiedSecret returns a Secret that copies its value from another one.
func (s *testSite) copiedSecret(from string) *unstructured.Unstructured {
	return s.object(`{apiVersion: v1, kind: Secret, metadata: {name: copy, namespace: NS, annotations: {secrets.pergola.dev/values-from: '{"cacert":"` + from + `/bundle.crt"}'}}}`)
}

// applyOriginal applies a Secret in the namespace of the control plane.
func (s *testSite) applyOriginal(name, value string, immutable bool) {
	s.Helper()
	o := s.object(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: NS}, immutable: %t, data: {bundle.crt: %s}}", name, immutable, value))
	_, err := s.resource("secrets", s.ns).Apply(s.ctx, name, o, metav1.ApplyOptions{FieldManager: "user", Force: true})
	require.NoError(s, err)
}

// TestCopiedSecretsGetValues checks that copies get their values only when they are applied, follow
// their originals, are repaired, and are deleted with their bundle.
func TestCopiedSecretsGetValues(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			first, second := base64.StdEncoding.EncodeToString([]byte("the first secret value")), base64.StdEncoding.EncodeToString([]byte("the second secret value"))
			b := s.bundle(direct, s.copiedSecret("ca-1"), s.configMap("beside"))
			assert.Equal(t, change.Create, s.plan(b)["copy"], "what is not made yet can be planned")
			_, err := s.apply(b)
			require.ErrorContains(t, err, "Secret "+s.ns+"/copy: it gets its value cacert from key bundle.crt of Secret "+s.ns+"/ca-1 in cluster local, which does not exist")
			assert.NotContains(t, s.uids("secrets"), "secrets/copy")

			s.applyOriginal("ca-1", first, true)
			assert.Equal(t, apply.Created, s.mustApply(b)["copy"])
			assert.Equal(t, first, s.dataValue("secrets", "copy", "cacert"))
			live, err := s.resource("secrets", s.ns).Get(s.ctx, "copy", metav1.GetOptions{})
			require.NoError(t, err)
			assert.NotContains(t, live.GetAnnotations(), "secrets.pergola.dev/values-from")
			assert.NotContains(t, s.run.owner.state.bundles[0].Objects[0].Object, "data", "no value is kept")
			assert.NotEqual(t, apply.Configured, s.mustApply(b)["copy"], "nothing to do")

			// Use another original, as after a rotation, and change a mutable one. A plan shows no
			// values.
			s.applyOriginal("ca-2", second, false)
			b = s.bundle(direct, s.copiedSecret("ca-2"), s.configMap("beside"))
			items, _, err := s.run.reconciler.planBundle(s.ctx, s.run.owner, b, &servingCache{})
			require.NoError(t, err)
			text := fmt.Sprintf("%+v", items)
			assert.Contains(t, text, "cacert")
			for _, value := range []string{first, second, "the first secret value", "the second secret value"} {
				assert.NotContains(t, text, value)
			}
			s.mustApply(b)
			assert.Equal(t, second, s.dataValue("secrets", "copy", "cacert"))
			s.applyOriginal("ca-2", first, false)
			s.mustApply(b)
			assert.Equal(t, first, s.dataValue("secrets", "copy", "cacert"))

			// Drift.
			_, err = s.resource("secrets", s.ns).Patch(s.ctx, "copy", types.MergePatchType, []byte(`{"data":{"cacert":"YnkgaGFuZA=="}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			require.NoError(t, err)
			s.eventually("it is brought back", func() bool {
				_, _, err := s.run.reconciler.repair(s.ctx, s.run.owner, nameOfSet(b.Owner, b.Name))
				return err == nil && s.dataValue("secrets", "copy", "cacert") == first
			})

			s.mustApply(s.bundle(direct, s.configMap("beside")))
			uids := s.uids("secrets")
			assert.NotContains(t, uids, "secrets/copy")
			assert.Contains(t, uids, "secrets/ca-2", "the original is somebody else's")
		})
	}
}

// TestCopyOfMissingKeyFails checks that the error names the copy and the key.
func TestCopyOfMissingKeyFails(t *testing.T) {
	s := newSite(t)
	s.applyOriginal("ca-1", "eA==", true)
	o := s.copiedSecret("ca-1")
	o.SetAnnotations(map[string]string{"secrets.pergola.dev/values-from": strings.ReplaceAll(o.GetAnnotations()["secrets.pergola.dev/values-from"], "bundle.crt", "tls.crt")})
	_, err := s.apply(s.bundle(true, o))
	require.ErrorContains(t, err, "from key tls.crt of Secret "+s.ns+"/ca-1")
}

// TestCopiesOfConfigMaps checks that copies of ConfigMaps get their values from ConfigMaps, not
// from Secrets of the same name.
func TestCopiesOfConfigMaps(t *testing.T) {
	s := newSite(t)
	copied := s.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: copy, namespace: NS, annotations: {secrets.pergola.dev/values-from: '{"file":"settings/bundle.crt"}'}}}`)
	s.applyOriginal("settings", "eA==", false)
	_, err := s.apply(s.bundle(true, copied))
	require.ErrorContains(t, err, "it gets its value file from key bundle.crt of ConfigMap "+s.ns+"/settings in cluster local, which does not exist")

	for _, value := range []string{"first", "second"} {
		o := s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NS}, data: {bundle.crt: " + value + "}}")
		_, err = s.resource("configmaps", s.ns).Apply(s.ctx, "settings", o, metav1.ApplyOptions{FieldManager: "user", Force: true})
		require.NoError(t, err)
		s.mustApply(s.bundle(true, copied))
		assert.Equal(t, value, s.dataValue("configmaps", "copy", "file"))
	}
}

// TestValuesOfChartsAreFilledIn checks that tokens of charts are replaced by values, and that a
// plan shows no value of a Secret.
func TestValuesOfChartsAreFilledIn(t *testing.T) {
	s := newSite(t)
	password := "not to be seen"
	o := s.object(`{apiVersion: v1, kind: Secret, metadata: {name: copy, namespace: NS, annotations: {secrets.pergola.dev/values-in: '{"value-1":"Secret/login/bundle.crt"}'}}, data: {config: ` +
		base64.StdEncoding.EncodeToString([]byte("password: value-1")) + `}}`)
	b := s.bundle(true, o)
	assert.Equal(t, change.Create, s.plan(b)["copy"], "what is not made yet can be planned")
	_, err := s.apply(b)
	require.ErrorContains(t, err, "Secret "+s.ns+"/copy: it gets a value from key bundle.crt of Secret "+s.ns+"/login in cluster local, which does not exist")

	s.applyOriginal("login", base64.StdEncoding.EncodeToString([]byte(password)), false)
	items, _, err := s.run.reconciler.planBundle(s.ctx, s.run.owner, b, &servingCache{})
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%+v", items), password)
	assert.Equal(t, apply.Created, s.mustApply(b)["copy"])
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("password: "+password)), s.dataValue("secrets", "copy", "config"))
	assert.NotEqual(t, apply.Configured, s.mustApply(b)["copy"], "nothing to do")
}
