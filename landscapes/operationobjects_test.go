// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// loadValid loads a landscape that must have no violations.
func loadValid(t *testing.T, files fstest.MapFS) *Landscape {
	t.Helper()
	l, violations, err := LoadFS(t.Context(), files, ".", Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	return l
}

// TestOperationsAndTheirObjects: an operation file and the annotation have the same rules for the
// object in the same commit.
func TestOperationsAndTheirObjects(t *testing.T) {
	const shoot, hibernated, below = "projects/local/shoot.yaml", "\nspec:\n  hibernation: {enabled: true}\n", "version: 1.33.5"
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		object, operation string
		replace           []string // replacements in the Shoot
		config            string
		want              string // "" if it is possible
	}{
		"a reconciliation":                   {object: "Shoot garden-local/local", operation: "reconcile"},
		"a pool":                             {object: "Shoot garden-local/local", operation: "rollout-workers=local"},
		"no such pool":                       {object: "Shoot garden-local/local", operation: "rollout-workers=no-such-pool", want: `spec.operation shoot/operations there is no pool "no-such-pool"`},
		"two pools, of which one is missing": {object: "Shoot garden-local/local", operation: "rollout-workers=local,other", want: `there is no pool "other"`},
		"a pool after a rotation":            {object: "Shoot garden-local/local", operation: "rotate-rollout-workers=local"},
		"no such pool after a rotation":      {object: "Shoot garden-local/local", operation: "rotate-rollout-workers=other", want: `there is no pool "other"`},
		"gone in this version":               {object: "Shoot garden-local/local", operation: "rotate-etcd-encryption-key-start", want: "not possible since Kubernetes 1.34"},
		"still there in that version":        {object: "Shoot garden-local/local", operation: "rotate-etcd-encryption-key-start", replace: []string{"version: 1.34.1", below}},
		"a completion":                       {object: "Shoot garden-local/local", operation: "rotate-credentials-complete"},
		"a start":                            {object: "Shoot garden-local/local", operation: "rotate-credentials-start"},
		"contradictions":                     {object: "Shoot garden-local/local", operation: "rotate-ca-start;rotate-ca-start-without-workers-rollout", want: "contradict each other"},
		"together with one that goes alone":  {object: "Shoot garden-local/local", operation: "reconcile;maintain", want: `"maintain" cannot be combined`},
		"hibernated":                         {object: "Shoot garden-local/local", operation: "rotate-etcd-encryption-key", replace: []string{"\nspec:\n", hibernated}, want: "not possible while the cluster is hibernated"},
		"a hibernated cluster is reconciled": {object: "Shoot garden-local/local", operation: "reconcile", replace: []string{"\nspec:\n", hibernated}},
		"no such Shoot":                      {object: "Shoot garden-local/lokal", operation: "reconcile", want: `spec.object landscape/operation-object Shoot garden-local/lokal is not declared in this landscape; did you mean "Shoot garden-local/local"`},
		"a Shoot in another namespace":       {object: "Shoot garden-dev/local", operation: "reconcile", want: "is not declared in this landscape"},
		"a Shoot elsewhere":                  {object: "Shoot garden-dev/theirs", operation: "reconcile", config: "  external:\n  - {kind: Shoot, namespace: garden-dev, name: \"*\"}\n"},
		"no such Garden":                     {object: "Garden lokal", operation: "rotate-credentials-start", want: `did you mean "Garden local"`},
		"the Garden":                         {object: "Garden local", operation: "rotate-credentials-start"},
		"the Garden completes":               {object: "Garden local", operation: "rotate-credentials-complete"},
		"gone in the version of the Garden":  {object: "Garden local", operation: "rotate-etcd-encryption-key-start", want: "garden/operations"},
		"no such Seed":                       {object: "Seed lokal", operation: "reconcile", want: `did you mean "Seed local"`},
		"the Seed":                           {object: "Seed local", operation: "renew-kubeconfig"},
		"no ManagedSeed at all":              {object: "ManagedSeed garden/x", operation: "reconcile", want: "the landscape declares no ManagedSeed"},
		"no such Project":                    {object: "Project other", operation: "confirm-deletion", want: "the landscape declares Project local"},
		"a confirmation":                     {object: "Project local", operation: "confirm-deletion"},
		"late, so that it is never executed": {object: "Shoot garden-local/lokal", operation: "reconcile\n  notAfter: \"2026-10-01T00:00:00Z\""},
		"not yet late":                       {object: "Shoot garden-local/lokal", operation: "reconcile\n  notAfter: \"2026-12-01T00:00:00Z\"", want: "is not declared"},
	} {
		t.Run(name, func(t *testing.T) {
			files := readMemoryFS(t, "local")
			text := string(files[shoot].Data)
			for i := 0; i < len(test.replace); i += 2 {
				require.Contains(t, text, test.replace[i])
				text = strings.Replace(text, test.replace[i], test.replace[i+1], 1)
			}
			files[shoot] = &fstest.MapFile{Data: []byte(text)}
			files["landscape.yaml"] = &fstest.MapFile{Data: append(files["landscape.yaml"].Data, test.config...)}
			read := func() *Landscape { return loadValid(t, files) }
			before := read()
			files["operations/op.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec:\n  object: %s\n  operation: %s\n", test.object, test.operation)}
			l := read()
			found, err := l.checkOperations(now, before)
			require.NoError(t, err)
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			v := found[0]
			assert.Contains(t, v.Field+" "+v.Rule+" "+v.Message, test.want)
			line := 5
			if v.Field == "spec.object" {
				line = 4
			}
			assert.Equal(t, []any{"operations/op.yaml", line, KindOperation, "op"}, []any{v.File, v.Line, v.Kind, v.Name})

			same, err := l.checkOperations(now, l)
			require.NoError(t, err)
			assert.Empty(t, same, "it may have been executed")
		})
	}
}

// TestOperationsOfUnknownAge: if it is unknown which operations are new, findings are warnings.
func TestOperationsOfUnknownAge(t *testing.T) {
	files := readMemoryFS(t, "local")
	files["operations/op.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec:\n  object: Shoot garden-local/lokal\n  operation: reconcile\n")}
	l, violations, err := LoadFS(t.Context(), files, ".", Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	for before, severity := range map[*Landscape]schemas.Severity{nil: schemas.SeverityWarning, {Config: l.Config}: schemas.SeverityError} {
		found, err := l.ValidateAt(t.Context(), validationTime, before, schemas.Options{})
		require.NoError(t, err)
		require.Len(t, found, 1)
		assert.Equal(t, []any{severity, "landscape/operation-object"}, []any{found[0].Severity, found[0].Rule})
	}
}

// TestOperationOfARemovedObject: one commit may confirm a deletion and remove the object.
func TestOperationOfARemovedObject(t *testing.T) {
	files := readMemoryFS(t, "local")
	before, _, err := LoadFS(t.Context(), files, ".", Options{})
	require.NoError(t, err)
	delete(files, "projects/local/shoot.yaml")
	files["operations/op.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec:\n  object: Shoot garden-local/local\n  operation: confirm-deletion\n")}
	l, violations, err := LoadFS(t.Context(), files, ".", Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	found, err := l.checkOperations(validationTime, before)
	require.NoError(t, err)
	assert.Empty(t, found)
}

// TestChangedOperation: an id identifies one operation, which may already have run.
func TestChangedOperation(t *testing.T) {
	const first = "  object: Shoot garden-local/local\n  operation: reconcile\n"
	for name, test := range map[string]struct{ file, spec, want string }{
		"as it was":           {"op", first, ""},
		"another operation":   {"op", "  object: Shoot garden-local/local\n  operation: rotate-ssh-keypair\n", "the id op already belongs to reconcile of Shoot garden-local/local, which runs only once"},
		"another object":      {"op", "  object: Seed local\n  operation: renew-kubeconfig\n", "the id op already belongs to reconcile of Shoot garden-local/local"},
		"another time":        {"op", first + "  notAfter: \"2026-12-01T00:00:00Z\"\n", "give this one another id"},
		"a time that is over": {"op", first + "  notAfter: \"2025-12-01T00:00:00Z\"\n", ""},
		"under another id":    {"next", "  object: Shoot garden-local/local\n  operation: rotate-ssh-keypair\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := readMemoryFS(t, "local")
			read := func(file, spec string) *Landscape {
				files["operations/"+file+".yaml"] = &fstest.MapFile{Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec:\n" + spec)}
				l, violations, err := LoadFS(t.Context(), files, ".", Options{})
				require.NoError(t, err)
				require.Empty(t, violations)
				return l
			}
			before := read("op", first)
			found, err := read(test.file, test.spec).checkOperations(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), before)
			require.NoError(t, err)
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, []any{ruleOperationChanged, schemas.SeverityWarning}, []any{found[0].Rule, found[0].Severity})
			assert.Contains(t, found[0].Message, test.want)
		})
	}
}

// TestConflictingOperations: operations of one commit run shortly after each other.
func TestConflictingOperations(t *testing.T) {
	const begins, completes = "Shoot garden-local/local/rotate-credentials-start", "Shoot garden-local/local/rotate-credentials-complete"
	for name, test := range map[string]struct {
		operations []string
		want       string
	}{
		"one":                          {operations: []string{begins}},
		"both phases":                  {operations: []string{begins, completes}, want: "op1.yaml rotate-credentials-complete is rejected until rotate-credentials-start is prepared"},
		"the other way round":          {operations: []string{completes, begins}, want: "op1.yaml rotate-credentials-complete is rejected"},
		"one of all":                   {operations: []string{begins, "Shoot garden-local/local/rotate-ca-complete"}, want: "rotate-ca-complete is rejected until rotate-credentials-start is prepared"},
		"all after one":                {operations: []string{"Shoot garden-local/local/rotate-ca-start-without-workers-rollout", completes}, want: "rotate-credentials-complete is rejected until rotate-ca-start-without-workers-rollout is prepared"},
		"of several":                   {operations: []string{"Shoot garden-local/local/rotate-ca-start;rotate-observability-credentials", "Shoot garden-local/local/rotate-ca-complete"}, want: "rotate-ca-complete is rejected"},
		"of others":                    {operations: []string{"Shoot garden-local/local/rotate-ca-start", "Shoot garden-local/local/rotate-serviceaccount-key-complete"}},
		"of another object":            {operations: []string{begins, "Garden local/rotate-credentials-complete"}},
		"the same twice":               {operations: []string{"Seed local/reconcile", "Seed local/reconcile"}, want: "op1.yaml reconcile of Seed local is already requested by operations/op0.yaml"},
		"the same of others":           {operations: []string{"Seed local/reconcile", "Shoot garden-local/local/reconcile"}},
		"the same after one that went": {operations: []string{"Seed local/reconcile\n  notAfter: \"2026-10-01T00:00:00Z\"", "Seed local/reconcile"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := readMemoryFS(t, "local")
			read := func() *Landscape { return loadValid(t, files) }
			before := read()
			for i, text := range test.operations {
				last := strings.LastIndex(text, "/")
				files[fmt.Sprintf("operations/op%d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil,
					"apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec:\n  object: %s\n  operation: %s\n", text[:last], text[last+1:])}
			}
			found, err := read().checkOperations(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), before)
			require.NoError(t, err)
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0].File+" "+found[0].Message, test.want)
			assert.Equal(t, schemas.SeverityWarning, found[0].Severity)
		})
	}
}
