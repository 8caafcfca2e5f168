package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/render"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(raw))
	return o
}

func TestAddressOfALoadBalancer(t *testing.T) {
	for name, c := range map[string]struct{ status, want string }{
		"none yet":          {"{}", ""},
		"empty":             {"{loadBalancer: {ingress: []}}", ""},
		"an address":        {"{loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", "192.0.2.1"},
		"a name":            {"{loadBalancer: {ingress: [{hostname: lb.example.org}]}}", "lb.example.org"},
		"both":              {"{loadBalancer: {ingress: [{ip: 192.0.2.1, hostname: lb.example.org}]}}", "192.0.2.1"},
		"the last of two":   {"{loadBalancer: {ingress: [{ip: 192.0.2.1}, {ip: '2001:db8::1'}]}}", "2001:db8::1"},
		"neither, for once": {"{loadBalancer: {ingress: [{}]}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, balancerAddress(parsed(t, "{apiVersion: v1, kind: Service, status: "+c.status+"}")))
		})
	}
}

// Before there are definitions, a gateway and a bucket, a Garden can be rendered.
func TestFactsOfAGardenThatIsNotThere(t *testing.T) {
	s := newSite(t)
	s.work.owner.Input.Owner.Kind = Garden
	facts, err := s.work.lateFacts(s.ctx, s.work.owner, render.Facts{})
	require.NoError(t, err)
	assert.Empty(t, facts.Addresses)
	assert.Empty(t, facts.Extensions)
}
