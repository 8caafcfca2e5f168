// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// TestHeldReferences checks that a held object also holds the objects that it refers to,
// transitively.
func TestHeldReferences(t *testing.T) {
	const core, security = "core.gardener.cloud/v1beta1", "security.gardener.cloud/v1alpha1"
	shoot := apply.Ref{APIVersion: core, Kind: "Shoot", Namespace: "garden-a", Name: "s"}
	binding := apply.Ref{APIVersion: security, Kind: "CredentialsBinding", Namespace: "garden-a", Name: "b"}
	secret := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden-a", Name: "c"}
	other := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden-a", Name: "d"}
	refers := map[apply.Ref][]apply.Ref{shoot: {binding, {APIVersion: "v1", Kind: "Secret", Namespace: "garden-b", Name: "d"}}, binding: {secret, shoot}}
	referred := func(ref apply.Ref) []crosscheck.ReferencedObject {
		var out []crosscheck.ReferencedObject
		for _, to := range refers[ref] {
			out = append(out, crosscheck.ReferencedObject{Kind: schema.FromAPIVersionAndKind(to.APIVersion, to.Kind).GroupKind(), Namespace: to.Namespace, Name: to.Name})
		}
		return out
	}
	entries := []apply.Entry{{Ref: secret}, {Ref: other}, {Ref: binding}, {Ref: shoot}}
	held := func(e apply.Entry) bool { return e.Kind == "Shoot" }
	assert.Equal(t, map[apply.Ref]apply.Ref{binding: shoot, secret: binding}, heldReferences(entries, held, referred))
	assert.Empty(t, heldReferences(entries, func(apply.Entry) bool { return false }, referred), "nothing is held")
	assert.Empty(t, heldReferences(entries[:2], held, referred), "the Shoot is still declared, and so not among what is gone")
}
