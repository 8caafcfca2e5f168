package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSeedForTerminals(t *testing.T) {
	named := func(label string, names ...string) []*unstructured.Unstructured {
		var out []*unstructured.Unstructured
		for _, name := range names {
			out = append(out, parsed(t, "{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: "+name+", labels: {seed.gardener.cloud/network: "+label+"}}}"))
		}
		return out
	}
	public, private := named("public", "c", "b", "unmanaged"), named("private", "a")
	assert.Equal(t, "b", firstPublicManaged(append(public, private...), named("public", "a", "b", "c")))
	assert.Empty(t, firstPublicManaged(append(public, private...), named("public", "a", "other")))
	assert.Empty(t, firstPublicManaged(nil, nil))
}

// What is not asked for costs no request, and a virtual garden that does not answer changes nothing.
func TestSeedForTerminalsIsKept(t *testing.T) {
	s := newSite(t)
	o := s.work.owner
	o.Input.Objects = map[string]map[string]any{Garden: {"spec": map[string]any{}}}
	assert.Empty(t, terminalHost(s.ctx, o, map[string]string{"terminal-host": "before"}))
	o.Input.Objects = map[string]map[string]any{Garden: parsed(t, "{apiVersion: v1, kind: Garden, spec: {virtualCluster: {gardener: {gardenerDashboard: {terminal: {container: {image: x}}}}}}}").Object}
	o.Target = o.Local // it serves no Seeds
	assert.Equal(t, "before", terminalHost(s.ctx, o, map[string]string{"terminal-host": "before"}))
	assert.Empty(t, terminalHost(s.ctx, o, nil))
	o.terminalHost = "last"
	assert.Equal(t, "last", terminalHost(s.ctx, o, nil))
}
