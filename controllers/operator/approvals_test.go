package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
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

// TestWithdrawn: an approval of what is not held is spent, as is that of several of which not all are.
func TestWithdrawn(t *testing.T) {
	held := func(id string) apply.Held {
		return apply.Held{Ref: apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: id}, Approval: id}
	}
	report := &landscape.Report{Held: []owner.HeldObjects{
		{Cluster: "virtual", Objects: []apply.Held{held("b"), held("d")}, Approval: "both"}, {Cluster: "virtual", Objects: []apply.Held{held("e")}, Approval: "e"},
	}}
	for name, test := range map[string]struct{ approved, used, want []string }{
		"not held any more":        {[]string{"a"}, nil, []string{"a"}},
		"held":                     {[]string{"b", "d", "e"}, nil, nil},
		"together":                 {[]string{"both"}, nil, nil},
		"together with others":     {[]string{"all"}, nil, []string{"all"}},
		"used, and held again":     {[]string{"b", "b-2"}, []string{"b"}, nil},
		"used, and not held again": {[]string{"a", "a-2"}, []string{"a"}, []string{"a-2"}},
		"on a seed":                {[]string{"seed/a"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, withdrawn(test.approved, test.used, report)) })
	}
}

// TestUseUp: what a sync has used up is used up, however it went: of what it has asked a server to delete it may have heard nothing.
func TestUseUp(t *testing.T) {
	for name, complete := range map[string]bool{"went well": true, "failed": false} {
		t.Run(name, func(t *testing.T) {
			s := &syncer{object: &landscapev1alpha1.Landscape{}, status: &statusWriter{}}
			s.object.Spec.Approved = []string{"a", "a-2", "b"}
			s.status.now.UsedApprovals = []string{"a", "a-2", "withdrawn"}
			j := &job{given: permissions{used: []string{"a"}, spent: []string{"a-2"}}}
			spent, _ := s.useUp(j, &landscape.Report{}, complete)
			assert.Equal(t, []string{"a-2"}, spent)
			assert.Equal(t, []string{"a", "a-2"}, s.status.now.UsedApprovals, "what is not approved any more can be given anew")
			assert.Empty(t, j.given.used)
		})
	}
}

func TestPassedText(t *testing.T) {
	assert.Empty(t, PassedText(nil))
	assert.Equal(t, "passed by approval: a, b-2", PassedText([]string{"a", "b-2"}))
	assert.Equal(t, "passed by approval: 1, 2, 3, 4, 5, and 2 more", PassedText([]string{"1", "2", "3", "4", "5", "6", "7"}))
}

// TestAddFormer: a sync that failed before it saw everything forgets nothing that is held.
func TestAddFormer(t *testing.T) {
	before := []landscapev1alpha1.HeldDeletion{
		{Cluster: "virtual", Object: "Secret default/seen", Reason: "old", Why: change.Reason{Detail: "old"}, Approval: "a"}, {Cluster: "runtime", Object: "Namespace unseen", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "b-2"},
		{Cluster: "runtime", Object: "Namespace passed", Approval: "c"}, {Cluster: "runtime", Object: "Namespace one", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "e", Together: "g"},
		{Cluster: "runtime", Object: "Namespace two", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "f", Together: "g"}, {Cluster: "virtual", Object: "Seed gone", Reason: "its file is gone", Why: change.Reason{Detail: "its file is gone"}},
	}
	report := &landscape.Report{Held: []owner.HeldObjects{{Cluster: "virtual", Approval: "d", Objects: []apply.Held{{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "seen"}, Reason: change.Reason{Detail: "new"}, Approval: "d"}}}}}
	(&job{given: permissions{used: []string{"c"}}}).addFormer(report, before)
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{
		{Cluster: "virtual", Object: "Secret default/seen", Reason: "new", Why: change.Reason{Detail: "new"}, Approval: "d"}, {Cluster: "runtime", Object: "Namespace unseen", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "b-2"},
		{Cluster: "runtime", Object: "Namespace one", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "e", Together: "g"}, {Cluster: "runtime", Object: "Namespace two", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "f", Together: "g"},
		{Cluster: "virtual", Object: "Seed gone", Reason: "its file is gone", Why: change.Reason{Detail: "its file is gone"}},
	}, heldOf(report, []string{"b"}))
}
