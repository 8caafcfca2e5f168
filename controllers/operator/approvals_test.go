package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// TestApprovalsCountOnce: an id that was used approves nothing more, and the one that is shown in its place does.
func TestApprovalsCountOnce(t *testing.T) {
	for name, test := range map[string]struct{ approved, used, want []string }{
		"new":                      {[]string{"a", "b"}, nil, []string{"a", "b"}},
		"used":                     {[]string{"a", "b"}, []string{"a"}, []string{"b"}},
		"again":                    {[]string{"a", "a-2"}, []string{"a"}, []string{"a"}},
		"used again":               {[]string{"a", "a-2"}, []string{"a", "a-2"}, nil},
		"a third time":             {[]string{"a", "a-2", "a-3"}, []string{"a", "a-2"}, []string{"a"}},
		"the second before one":    {[]string{"a-2"}, nil, nil},
		"of another one":           {[]string{"b-2"}, []string{"a"}, nil},
		"more than there were yet": {[]string{"a", "a-3"}, []string{"a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			l.Spec.Approved, l.Status.UsedApprovals = test.approved, test.used
			assert.Equal(t, test.want, approvals(l))
		})
	}
}

// TestWithdrawn: an approval of what is not held any more is spent; one that was given before anything was held, or of what is still held
// in part, is not.
func TestWithdrawn(t *testing.T) {
	before := []landscapev1alpha1.HeldDeletion{
		{Cluster: "virtual", Object: "Namespace a", Approval: "a"}, {Cluster: "virtual", Object: "Namespace b", Approval: "b"},
		{Cluster: "virtual", Object: "Namespace c", Approval: "c", Together: "both"}, {Cluster: "virtual", Object: "Namespace d", Approval: "d", Together: "both"},
	}
	report := &landscape.Report{Held: []owner.HeldObjects{{Cluster: "virtual", Objects: []apply.Held{{Ref: apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: "b"}}, {Ref: apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: "d"}}}}}}
	assert.Equal(t, []string{"a"}, withdrawn([]string{"a", "b", "both", "d", "early"}, nil, before, report))
	assert.Equal(t, []string{"c"}, withdrawn([]string{"c", "d"}, nil, before, report), "each has an id of its own")
	assert.Empty(t, withdrawn([]string{"a", "b"}, []string{"a"}, before, report))
	assert.Empty(t, withdrawn([]string{"early"}, nil, before, &landscape.Report{}))
}

// TestUseUp: what a sync has used up is used up, however it went: of what it has asked a server to delete it may have heard nothing.
func TestUseUp(t *testing.T) {
	for name, complete := range map[string]bool{"went well": true, "failed": false} {
		t.Run(name, func(t *testing.T) {
			s := &syncer{object: &landscapev1alpha1.Landscape{}, status: &statusWriter{}}
			s.object.Spec.Approved = []string{"a", "a-2", "b"}
			s.status.now.UsedApprovals = []string{"a", "a-2", "withdrawn"}
			j := &job{used: []string{"a"}, spent: []string{"a-2"}}
			assert.Equal(t, []string{"a-2"}, s.useUp(j, &landscape.Report{}, complete))
			assert.Equal(t, []string{"a", "a-2"}, s.status.now.UsedApprovals, "what is not approved any more can be given anew")
			assert.Empty(t, j.used)
		})
	}
}

func TestPassedText(t *testing.T) {
	assert.Empty(t, passedText(nil))
	assert.Empty(t, PassedBy("1 deleted"))
	text := passedText([]string{"a", "b-2"})
	assert.Equal(t, "passed by approval: a, b-2", text)
	assert.Equal(t, text, PassedBy("1 deleted; "+text+"; more"))
	assert.Equal(t, "passed by approval: 1, 2, 3, 4, 5, and 2 more", passedText([]string{"1", "2", "3", "4", "5", "6", "7"}))
}

// TestAddFormer: a sync that failed before it saw everything forgets nothing that is held.
func TestAddFormer(t *testing.T) {
	before := []landscapev1alpha1.HeldDeletion{
		{Cluster: "virtual", Object: "Secret default/seen", Reason: "old", Approval: "a"}, {Cluster: "runtime", Object: "Namespace unseen", Reason: "protected", Approval: "b-2"},
		{Cluster: "runtime", Object: "Namespace passed", Approval: "c"}, {Cluster: "runtime", Object: "Namespace one", Reason: "protected", Approval: "e", Together: "g"},
		{Cluster: "runtime", Object: "Namespace two", Reason: "protected", Approval: "f", Together: "g"}, {Cluster: "virtual", Object: "Seed gone", Reason: "its file is gone"},
	}
	report := &landscape.Report{Held: []owner.HeldObjects{{Cluster: "virtual", Approval: "d", Objects: []apply.Held{{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "seen"}, Reason: "new", Approval: "d"}}}}}
	(&job{used: []string{"c"}}).addFormer(report, before)
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{
		{Cluster: "virtual", Object: "Secret default/seen", Reason: "new", Approval: "d"}, {Cluster: "runtime", Object: "Namespace unseen", Reason: "protected", Approval: "b-2"},
		{Cluster: "runtime", Object: "Namespace one", Reason: "protected", Approval: "e", Together: "g"}, {Cluster: "runtime", Object: "Namespace two", Reason: "protected", Approval: "f", Together: "g"},
		{Cluster: "virtual", Object: "Seed gone", Reason: "its file is gone"},
	}, heldOf(report, []string{"b"}))
}
