package landscapes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/kept"
)

// TestWhatCannotBeReadIsNotMissing: a reference to an object whose document has a finding is no second fault.
func TestWhatCannotBeReadIsNotMissing(t *testing.T) {
	const binding = "apiVersion: core.gardener.cloud/v1beta1\nkind: SecretBinding\nmetadata: {name: b, namespace: garden-dev}\nprovider: {type: local}\nsecretRef: {name: key, namespace: garden-dev}\n"
	const missing = `binding.yaml: there is no Secret "key" in namespace garden-dev in this landscape; declare it, or list it in landscape.yaml under spec.external`
	store := kept.InMemory()
	for name, c := range map[string]struct {
		file, text string
		missing    bool
	}{
		"no file":              {"other.yaml", namespace("other"), true},
		"no YAML":              {"key.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: key\ndata: a: b\n", false},
		"in quotes":            {"key.yaml", "apiVersion: v1\n\"kind\": \"Secret\"\nmetadata: {'name': 'key'}\ndata: a: b\n", false},
		"no JSON":              {"key.json", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key"},"data":`, false},
		"a field twice":        {"key.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\ntype: a\ntype: b\n", false},
		"of several documents": {"key.yaml", namespace("other") + "---\nkind: Secret\nmetadata:\n\tname: key\n---\n" + namespace("more"), false},
		"another name":         {"key.yaml", "kind: Secret\nmetadata:\n  name: keys\ndata: a: b\n", true},
		"another kind":         {"key.yaml", "kind: ConfigMap\nmetadata:\n  name: key\ndata: a: b\n", true},
		"in another document":  {"key.yaml", "kind: Secret\ndata: a: b\n---\nkind: ConfigMap\nmetadata: {name: key\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree(map[string]string{"landscape.yaml": bareConfig, "binding.yaml": binding, c.file: c.text})
			for _, opts := range []Options{{}, {Kept: store}, {Kept: store}} { // with what an earlier run found, too
				l, _, err := LoadFS(t.Context(), files, ".", opts)
				require.NoError(t, err)
				found, err := l.ValidateAt(t.Context(), time.Now(), nil, schemas.Options{})
				require.NoError(t, err)
				var told []string
				for _, v := range found {
					if v.Rule == "secretbinding/references" {
						told = append(told, v.File+": "+v.Message)
					}
				}
				if c.missing {
					assert.Equal(t, []string{missing}, told)
				} else {
					assert.Empty(t, told)
				}
			}
		})
	}
}
