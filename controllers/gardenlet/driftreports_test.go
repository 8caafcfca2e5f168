// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"

	"github.com/pergola-dev/pergola/apply"
)

// TestUnrepairedDriftIsReportedOnce: each object that cannot be repaired is reported once, although
// each repair is retried every 30 s. A change is reported again. Objects beyond the limit share one
// report.
func TestUnrepairedDriftIsReportedOnce(t *testing.T) {
	recorded := record.NewFakeRecorder(1000)
	g := &Gardenlet{options: Options{Log: slog.New(slog.DiscardHandler)}, services: services{recorder: recorded}, eventHistory: eventHistory{messages: map[string]string{}}}
	shoot := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": map[string]any{"name": "one", "namespace": "garden-a", "uid": "1"}}}
	drift := func(set, name string) apply.DriftEvent {
		return apply.DriftEvent{Cluster: "seed", Set: set, Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}, Deleted: true}
	}
	told := func() (out []string) {
		for {
			select {
			case e := <-recorded.Events:
				reason, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(e, "Warning "), "Normal "), " ")
				name := "?"
				if _, rest, ok := strings.Cut(e, "ConfigMap a/"); ok {
					name, _, _ = strings.Cut(rest, " ")
				}
				out = append(out, reason+" "+name)
			default:
				return out
			}
		}
	}
	const refused = "could not be repaired: a webhook refuses it"
	one, two, other := drift("x", "one"), drift("x", "two"), drift("y", "other")
	for range 3 {
		for _, e := range []apply.DriftEvent{one, two, other} {
			g.reportDrift(shoot, e, refused)
		}
	}
	assert.Equal(t, []string{"DriftNotRepaired one", "DriftNotRepaired two", "DriftNotRepaired other"}, told())
	g.reportDrift(shoot, one, "could not be repaired: no rights")
	assert.Equal(t, []string{"DriftNotRepaired one"}, told(), "for another reason")

	// A set is applied as a whole: new failures in it are reported, failures in other sets are not.
	g.reportDrift(shoot, two, "")
	for _, e := range []apply.DriftEvent{one, two, other} {
		g.reportDrift(shoot, e, refused)
	}
	assert.Equal(t, []string{"DriftRepaired two", "DriftNotRepaired one", "DriftNotRepaired two"}, told())
	g.resetWarnings()
	g.reportDrift(shoot, one, refused)
	assert.Equal(t, []string{"DriftNotRepaired one"}, told(), "Events do not live long")

	g.resetWarnings()
	many := func() {
		for i := range maxDriftReports + 10 {
			g.reportDrift(shoot, drift(fmt.Sprint("set ", i), fmt.Sprint("o", i)), refused)
		}
	}
	for range 3 {
		many()
	}
	all := told()
	assert.Len(t, all, maxDriftReports+1)
	assert.Equal(t, "DriftNotRepaired ?", all[maxDriftReports], "the others as one")
	g.reportDrift(shoot, drift("set 0", "o0"), "")
	g.reportDrift(shoot, drift("set 1", "o1"), "")
	for range 3 {
		for i := range maxDriftReports + 8 {
			g.reportDrift(shoot, drift(fmt.Sprint("set ", i+2), fmt.Sprint("o", i+2)), refused)
		}
	}
	assert.Equal(t, []string{"DriftRepaired o0", "DriftRepaired o1", fmt.Sprint("DriftNotRepaired o", maxDriftReports), fmt.Sprint("DriftNotRepaired o", maxDriftReports+1), "DriftNotRepaired ?"}, told())
	for i := range maxDriftReports + 10 {
		g.reportDrift(shoot, drift(fmt.Sprint("set ", i), fmt.Sprint("o", i)), "")
	}
	assert.Empty(t, g.eventHistory.driftReports)
}
