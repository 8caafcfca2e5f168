package stages

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/expression"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// TestStagesAreKwoks reads every Stage the way kwok does: no unknown field, every query compiles.
func TestStagesAreKwoks(t *testing.T) {
	all, err := Load()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	names := map[string]bool{}
	for _, stage := range all {
		t.Run(stage.Name, func(t *testing.T) {
			assert.False(t, names[stage.Name], "two stages of one name")
			names[stage.Name] = true
			data, err := json.Marshal(stage.Object)
			require.NoError(t, err)
			assert.NotContains(t, string(data), "$(", "placeholders are replaced")
			var typed v1alpha1.Stage
			decoder := json.NewDecoder(bytes.NewReader(data))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(&typed))
			require.NotNil(t, typed.Spec.Selector)
			for _, match := range typed.Spec.Selector.MatchExpressions {
				_, err := expression.NewQuery(match.Key)
				assert.NoError(t, err, match.Key)
			}
		})
	}
}

func TestLoadExpandsKinds(t *testing.T) {
	all, err := Load()
	require.NoError(t, err)
	var reconciled []string
	for _, stage := range all {
		if stage.Name == "extension-worker-reconcile" {
			assert.Equal(t, "Worker", stage.Kind)
			assert.Equal(t, "extensions.gardener.cloud/v1alpha1", stage.GroupVersion)
			assert.False(t, stage.Builtin())
		}
		if stage.GroupVersion == "extensions.gardener.cloud/v1alpha1" && !slices.Contains(reconciled, stage.Kind) {
			reconciled = append(reconciled, stage.Kind)
		}
	}
	assert.ElementsMatch(t, reconciled, []string{
		"Infrastructure", "ControlPlane", "Network", "OperatingSystemConfig", "Worker", "BackupBucket", "BackupEntry",
		"DNSRecord", "Extension", "ContainerRuntime", "Bastion", "SelfHostedShootExposure",
	})
}

// TestExactlyOneStage plays objects through the selectors of the extension Stages: kwok draws lots
// between Stages that match at once, so never more than one may.
func TestExactlyOneStage(t *testing.T) {
	type m = map[string]any
	succeeded := m{"observedGeneration": 2.0, "lastOperation": m{"type": "Reconcile", "state": "Succeeded"}}
	annotated := func(key, value string) m { return m{"generation": 2.0, "annotations": m{key: value}} }
	const operation, fail = "gardener.cloud/operation", "local.pergola.dev/fail"
	finalizer := []any{"extensions.gardener.cloud/worker"}
	for name, test := range map[string]struct {
		metadata, status m
		want             string
	}{
		"new":                   {m{"generation": 1.0}, nil, "extension-worker-reconcile"},
		"done":                  {m{"generation": 2.0}, succeeded, ""},
		"new generation":        {m{"generation": 3.0}, succeeded, "extension-worker-reconcile"},
		"reconcile":             {annotated(operation, "reconcile"), succeeded, "extension-worker-reconcile"},
		"migrate":               {annotated(operation, "migrate"), succeeded, "extension-worker-reconcile"},
		"wait for state":        {annotated(operation, "wait-for-state"), nil, ""},
		"unknown operation":     {annotated(operation, "rotate"), succeeded, ""},
		"made to fail":          {annotated(fail, "no"), succeeded, "extension-worker-fail"},
		"has failed":            {annotated(fail, "no"), m{"observedGeneration": 2.0, "lastOperation": m{"type": "Reconcile", "state": "Error"}, "lastError": m{"description": "no"}}, ""},
		"other failure":         {annotated(fail, "other"), m{"observedGeneration": 2.0, "lastOperation": m{"type": "Reconcile", "state": "Error"}, "lastError": m{"description": "no"}}, "extension-worker-fail"},
		"recovers":              {m{"generation": 2.0}, m{"observedGeneration": 2.0, "lastOperation": m{"type": "Reconcile", "state": "Error"}}, "extension-worker-reconcile"},
		"deleted":               {m{"generation": 2.0, "deletionTimestamp": "t", "finalizers": finalizer}, succeeded, "extension-worker-delete"},
		"deleted, not ours":     {m{"generation": 2.0, "deletionTimestamp": "t", "finalizers": []any{"other"}}, succeeded, ""},
		"deleted, made to fail": {m{"generation": 2.0, "deletionTimestamp": "t", "finalizers": finalizer, "annotations": m{fail: "no"}}, succeeded, "extension-worker-fail"},
	} {
		t.Run(name, func(t *testing.T) {
			object := m{"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker", "metadata": test.metadata}
			if test.status != nil {
				object["status"] = test.status
			}
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			assert.Equal(t, want, matching(t, "Worker", object))
		})
	}
}

// matching returns the names of the Stages whose selector takes the object.
func matching(t *testing.T, kind string, object any) []string {
	t.Helper()
	all, err := Load()
	require.NoError(t, err)
	var names []string
	for _, stage := range all {
		if stage.Kind != kind {
			continue
		}
		data, err := json.Marshal(stage.Object)
		require.NoError(t, err)
		var typed v1alpha1.Stage
		require.NoError(t, json.Unmarshal(data, &typed))
		query, err := expression.NewQuery(typed.Spec.Selector.MatchExpressions[0].Key)
		require.NoError(t, err)
		results, err := query.Execute(t.Context(), object)
		require.NoError(t, err)
		if slices.Contains(results, any(true)) {
			names = append(names, stage.Name)
		}
	}
	return names
}

// TestOperationTypes renders the status of reconciled objects with kwok's own template engine.
func TestOperationTypes(t *testing.T) {
	type m = map[string]any
	renderer := gotpl.NewRenderer(gotpl.FuncMap{})
	for name, test := range map[string]struct {
		annotations, last m
		want              string
	}{
		"new":                    {nil, nil, "Create"},
		"create failed before":   {nil, m{"type": "Create", "state": "Error"}, "Create"},
		"again":                  {m{"gardener.cloud/operation": "reconcile"}, m{"type": "Create", "state": "Succeeded"}, "Reconcile"},
		"migrate":                {m{"gardener.cloud/operation": "migrate"}, m{"type": "Reconcile", "state": "Succeeded"}, "Migrate"},
		"restore of new":         {m{"gardener.cloud/operation": "restore"}, nil, "Restore"},
		"migrate failed before":  {nil, m{"type": "Migrate", "state": "Error"}, "Migrate"},
		"reconcile after a fail": {nil, m{"type": "Reconcile", "state": "Error"}, "Reconcile"},
	} {
		t.Run(name, func(t *testing.T) {
			object := m{"kind": "Network", "metadata": m{"generation": 4, "annotations": test.annotations}, "spec": m{}}
			if test.last != nil {
				object["status"] = m{"lastOperation": test.last}
			}
			out, err := renderer.ToJSON(template(t, "extension-network-reconcile"), object)
			require.NoError(t, err)
			var status struct {
				ObservedGeneration int
				LastOperation      struct{ Type, State string }
			}
			require.NoError(t, json.Unmarshal(out, &status))
			assert.Equal(t, 4, status.ObservedGeneration)
			assert.Equal(t, test.want, status.LastOperation.Type)
			assert.Equal(t, "Succeeded", status.LastOperation.State)
		})
	}
}

func template(t *testing.T, name string) string {
	t.Helper()
	all, err := Load()
	require.NoError(t, err)
	for _, stage := range all {
		if stage.Name == name {
			steps := stage.Object["spec"].(map[string]any)["steps"].([]any)
			return steps[0].(map[string]any)["patch"].(map[string]any)["template"].(string)
		}
	}
	require.FailNow(t, "no such stage", name)
	return ""
}
