package owner

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/render"
)

// emptyCluster is an API server that knows definitions and has none.
func emptyCluster(t *testing.T, name string) *apply.Cluster {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": []}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apiextensions.k8s.io", "versions": [{"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"}}]}`,
		"/apis/apiextensions.k8s.io/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apiextensions.k8s.io/v1", "resources": [
			{"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "namespaced": false, "verbs": ["get", "list", "watch"]}]}`,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": `{"kind": "CustomResourceDefinitionList", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"resourceVersion": "1"}, "items": []}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch text, known := answers[r.URL.Path]; {
		case r.URL.Query().Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case known:
			_, _ = w.Write([]byte(text))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	c, err := apply.NewCluster(name, &rest.Config{Host: server.URL}, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// A condition that is written names the object, as one that is judged for `status --live` does.
func TestConditionsNameTheObject(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	bundle := func(name string, objects ...string) render.Bundle {
		b := render.Bundle{Name: name, Cluster: render.ClusterVirtual}
		b.Delivery.Direct = true
		for _, object := range objects {
			b.Objects = append(b.Objects, render.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": object},
			}}})
		}
		return b
	}
	o := &Owner{Input: render.Input{Owner: render.Owner{Kind: Garden, Name: "local"}}, Target: emptyCluster(t, "virtual")}
	r := &Reconciler{Clock: clk}
	b := condition.New(clk, nil)
	for name, c := range map[string]struct {
		bundles  []render.Bundle
		failures map[string]string
		want     string
	}{
		"missing":     {[]render.Bundle{bundle("x", "plants.example.org", "trees.example.org")}, nil, "cluster virtual: CustomResourceDefinition plants.example.org: "},
		"not applied": {[]render.Bundle{bundle("x"), bundle("y")}, map[string]string{"y": strings.Repeat("long ", 1000)}, "long long "},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.componentCondition(t.Context(), o, b, commonStatus{}, b.Initial("VirtualComponentsHealthy"), c.bundles, c.failures, &serving{})
			assert.Equal(t, gardencorev1beta1.ConditionFalse, got.Status)
			require.Greater(t, len(got.Message), len(c.want), got.Message)
			assert.Equal(t, c.want, got.Message[:len(c.want)])
			assert.LessOrEqual(t, len([]rune(got.Message)), maxMessage)
		})
	}
}

func TestBundlesAreSortedByName(t *testing.T) {
	list := []BundleState{{Bundle: "b", Cluster: "runtime"}, {Bundle: "a", Cluster: "virtual"}, {Bundle: "a", Cluster: "runtime"}}
	sortBundles(list)
	assert.Equal(t, []BundleState{{Bundle: "a", Cluster: "runtime"}, {Bundle: "a", Cluster: "virtual"}, {Bundle: "b", Cluster: "runtime"}}, list)
}

// The API server of a Shoot is judged where somebody serves it, and from its first answer on: one that is played is not said to be down.
func TestAPIServerOfAShoot(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer answers.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer refuses.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	before := []gardencorev1beta1.Condition{{Type: "APIServerAvailable", Status: gardencorev1beta1.ConditionTrue, Reason: "HealthzRequestSucceeded"}}
	for name, c := range map[string]struct {
		kind   string
		at     string
		asleep bool
		before []gardencorev1beta1.Condition
		served bool
		want   string
	}{
		"answers":                     {Shoot, answers.URL, false, nil, false, "APIServerAvailable True HealthzRequestSucceeded"},
		"never answered":              {Shoot, gone.URL, false, nil, false, ""},
		"should answer":               {Shoot, gone.URL, false, nil, true, "APIServerAvailable False APIServerDown"},
		"is being made":               {Shoot, gone.URL, false, nil, true, "APIServerAvailable Progressing APIServerDown"},
		"no address at all":           {Shoot, "http://239.1.2.3", false, nil, false, ""},
		"does not answer any more":    {Shoot, gone.URL, false, before, false, "APIServerAvailable False APIServerDown"},
		"answers with an error":       {Shoot, refuses.URL, false, before, false, "APIServerAvailable False HealthzRequestFailed"},
		"was put to sleep":            {Shoot, gone.URL, true, before, false, "APIServerAvailable True ConditionNotChecked"},
		"made asleep":                 {Shoot, gone.URL, true, nil, false, ""},
		"virtual garden":              {Garden, answers.URL, false, nil, false, "VirtualGardenAPIServerAvailable True HealthzRequestSucceeded"},
		"virtual garden, never there": {Garden, gone.URL, false, nil, false, "VirtualGardenAPIServerAvailable False VirtualGardenAPIServerDown"},
		"a Seed serves none":          {Seed, answers.URL, false, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := apply.NewCluster("target", &rest.Config{Host: c.at}, apply.ClusterOptions{})
			require.NoError(t, err)
			defer target.Close()
			clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
			o := &Owner{Target: target, Input: render.Input{Owner: render.Owner{Kind: c.kind, Name: "x"}}}
			o.Input.Objects = map[string]map[string]any{Shoot: {"spec": map[string]any{"hibernation": map[string]any{"enabled": c.asleep}}}}
			r := &Reconciler{Clock: clk}
			if name == "is being made" {
				r.Thresholds = condition.Thresholds{"APIServerAvailable": time.Minute}
			}
			got := ""
			for _, one := range r.apiServerConditions(t.Context(), o, condition.New(clk, nil), commonStatus{Conditions: c.before}, &serving{known: true, is: c.served}) {
				got += strings.Join([]string{string(one.Type), string(one.Status), one.Reason}, " ")
			}
			assert.Equal(t, c.want, got)
		})
	}
}
