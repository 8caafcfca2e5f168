package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

func TestPilot(t *testing.T) {
	in := Input{Owner: Owner{Kind: "garden", Name: "local", ControlPlaneNamespace: "garden"},
		Objects: map[string]map[string]any{"garden": {"spec": map[string]any{}}}, TargetVersion: "1.34.1"}
	res, err := Render(in, Options{Catalogue: components.FS})
	require.NoError(t, err)
	for _, b := range res.Bundles {
		m, _ := ManifestYAML(b.Objects)
		t.Log(b.ID(), b.Digest, b.Delivery, b.Objects[0].Origin, string(m))
	}
	f, err := LoadFlow(components.FS, "reconcile", in)
	require.NoError(t, err)
	t.Log(f)
}
