package stages

import (
	"bytes"
	"encoding/json"
	"maps"
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
				_, err := expression.NewQuery(queryOf(match))
				assert.NoError(t, err, queryOf(match))
			}
		})
	}
}

func TestLoadExpandsKinds(t *testing.T) {
	all, err := Load()
	require.NoError(t, err)
	var reconciled []string
	for _, stage := range all {
		if stage.Name == "extension-worker-finish" {
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
	status := func(operation, state string, generation float64) m {
		return m{"observedGeneration": generation, "lastOperation": m{"type": operation, "state": state}, "lastError": m{"description": "no"}}
	}
	const operation, fail = "gardener.cloud/operation", "local.pergola.dev/fail"
	metadata := func(more ...m) m {
		all := m{"generation": 2.0, "finalizers": []any{"other", "extensions.gardener.cloud/worker"}}
		for _, some := range more {
			maps.Copy(all, some)
		}
		return all
	}
	annotated := func(pairs ...string) m {
		annotations := m{}
		for i := 0; i < len(pairs); i += 2 {
			annotations[pairs[i]] = pairs[i+1]
		}
		return m{"annotations": annotations}
	}
	deleted := m{"deletionTimestamp": "2026-01-01T00:00:00Z"}
	succeeded := status("Reconcile", "Succeeded", 2)
	for name, test := range map[string]struct {
		metadata, status m
		want             string
	}{
		"new":                    {m{"generation": 1.0}, nil, "finalizer"},
		"new, wait for state":    {m{"generation": 1.0, "annotations": m{operation: "wait-for-state"}}, nil, ""},
		"no operation asked for": {metadata(), nil, "finish"},
		"done":                   {metadata(), succeeded, ""},
		"new generation":         {metadata(), status("Reconcile", "Succeeded", 1), "finish"},
		"reconcile":              {metadata(annotated(operation, "reconcile")), succeeded, "accept"},
		"migrate":                {metadata(annotated(operation, "migrate")), succeeded, "accept"},
		"accepted":               {metadata(annotated(operation, "reconcile")), status("Reconcile", "Processing", 2), "work"},
		"worked on":              {metadata(), status("Reconcile", "Processing", 2), "finish"},
		"wait for state":         {metadata(annotated(operation, "wait-for-state")), nil, ""},
		"unknown operation":      {metadata(annotated(operation, "rotate")), succeeded, ""},
		"made to fail":           {metadata(annotated(fail, "no")), succeeded, "fail"},
		"fails when accepted":    {metadata(annotated(fail, "no")), status("Reconcile", "Processing", 2), "fail"},
		"is accepted to fail":    {metadata(annotated(fail, "no", operation, "reconcile")), status("Reconcile", "Error", 2), "accept"},
		"has failed":             {metadata(annotated(fail, "no")), status("Reconcile", "Error", 2), ""},
		"other failure":          {metadata(annotated(fail, "other")), status("Reconcile", "Error", 2), "fail"},
		"recovers":               {metadata(), status("Reconcile", "Error", 2), "finish"},
		"deleted":                {metadata(deleted), succeeded, "delete"},
		"deleted, asked for":     {metadata(deleted, annotated(operation, "reconcile")), succeeded, "delete"},
		"deleted, not ours":      {m{"generation": 2.0, "deletionTimestamp": "t", "finalizers": []any{"other"}}, succeeded, ""},
		"deleted, made to fail":  {metadata(deleted, annotated(fail, "no")), succeeded, "fail"},
		"deletion has failed":    {metadata(deleted, annotated(fail, "no")), status("Delete", "Error", 2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := m{"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker", "metadata": test.metadata}
			if test.status != nil {
				object["status"] = test.status
			}
			var want []string
			if test.want != "" {
				want = []string{"extension-worker-" + test.want}
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
		query, err := expression.NewQuery(queryOf(typed.Spec.Selector.MatchExpressions[0]))
		require.NoError(t, err)
		results, err := query.Execute(t.Context(), object)
		require.NoError(t, err)
		if slices.Contains(results, any(true)) {
			names = append(names, stage.Name)
		}
	}
	return names
}

// TestOperationTypes renders the status of objects with kwok's own template engine.
func TestOperationTypes(t *testing.T) {
	type m = map[string]any
	renderer := gotpl.NewRenderer(gotpl.FuncMap{})
	for name, test := range map[string]struct {
		stage     string
		operation string
		last      m
		want      string
	}{
		"asked for when new":         {"accept", "reconcile", nil, "Create Processing"},
		"asked for after a failure":  {"accept", "reconcile", m{"type": "Create", "state": "Error"}, "Create Processing"},
		"asked for again":            {"accept", "reconcile", m{"type": "Create", "state": "Succeeded"}, "Reconcile Processing"},
		"asked for after reconciled": {"accept", "reconcile", m{"type": "Reconcile", "state": "Error"}, "Reconcile Processing"},
		"migrate":                    {"accept", "migrate", m{"type": "Reconcile", "state": "Succeeded"}, "Migrate Processing"},
		"restore":                    {"accept", "restore", nil, "Restore Processing"},
		"not asked for":              {"finish", "", nil, "Create Succeeded"},
		"migrated":                   {"finish", "", m{"type": "Migrate", "state": "Processing"}, "Migrate Succeeded"},
		"created":                    {"finish", "", m{"type": "Create", "state": "Processing"}, "Create Succeeded"},
		"new generation":             {"finish", "", m{"type": "Create", "state": "Succeeded"}, "Reconcile Succeeded"},
		"recovered":                  {"finish", "", m{"type": "Create", "state": "Error"}, "Create Succeeded"},
		"creation fails":             {"fail", "", m{"type": "Create", "state": "Processing"}, "Create Error"},
		"fails later":                {"fail", "", m{"type": "Create", "state": "Succeeded"}, "Reconcile Error"},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := m{"gardener.cloud/operation": test.operation, "local.pergola.dev/fail": "say: \"no\""}
			object := m{"kind": "Network", "metadata": m{"generation": 4, "annotations": annotations}, "spec": m{}}
			if test.last != nil {
				object["status"] = m{"lastOperation": test.last}
			}
			out, err := renderer.ToJSON(template(t, "extension-network-"+test.stage), object)
			require.NoError(t, err)
			var status struct {
				LastOperation struct{ Type, State, Description string }
			}
			require.NoError(t, json.Unmarshal(out, &status))
			assert.Equal(t, test.want, status.LastOperation.Type+" "+status.LastOperation.State)
			if test.stage == "fail" {
				assert.Equal(t, "say: \"no\"", status.LastOperation.Description)
			}
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

// queryOf reads the query from the field that every version of kwok knows; the newer one beside it says the same.
func queryOf(match v1alpha1.MatchExpression) string {
	//lint:ignore SA1019 our Stages are written with it
	return match.Key
}
