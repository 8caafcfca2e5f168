// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
)

func refs(n int, apiVersion, kind string) []change.Ref {
	out := make([]change.Ref, n)
	for i := range out {
		out[i] = change.Ref{APIVersion: apiVersion, Kind: kind, Namespace: "n", Name: fmt.Sprintf("o%d", i)}
	}
	return out
}

// asEarlier returns a reason from an earlier run.
func asEarlier(r change.Reason) change.Reason {
	r.Earlier = true
	return r
}

// TestObjectsBeyondLimitStayHeld checks that objects beyond a limit stay held in the next run.
func TestObjectsBeyondLimitStayHeld(t *testing.T) {
	some := refs(3, "v1", "ConfigMap")
	gate := Gate{MaxDeletions: Limit(2), MaxShare: Limit(50)}
	first := gate.Judge("seed", some, 100)
	require.Len(t, first.Held, 3)
	one := some[:1]
	for name, test := range map[string]struct {
		gate   func(*Gate)
		before change.Reason
		want   string
	}{
		"by number":               {func(*Gate) {}, first.Held[some[0]], "it is still held: 3 deletions on cluster seed are more than the 2 allowed in one run"},
		"by share":                {func(*Gate) {}, change.Reason{Code: landscapev1alpha1.HeldTooLargeShare, Cluster: "seed", Count: 60, Total: 100, Limit: 50}, "it is still held: 60 of 100 objects on cluster seed are more than the 50% allowed in one run"},
		"and once more":           {func(*Gate) {}, asEarlier(first.Held[some[0]]), asEarlier(first.Held[some[0]]).String()},
		"though a review has it":  {func(g *Gate) { g.Reviewed = func(string, change.Ref) bool { return true } }, first.Held[some[0]], asEarlier(first.Held[some[0]]).String()},
		"another limit":           {func(g *Gate) { g.MaxDeletions = Limit(3) }, first.Held[some[0]], ""},
		"no limit":                {func(g *Gate) { g.MaxDeletions = nil }, first.Held[some[0]], ""},
		"it was not reviewed":     {func(*Gate) {}, change.Reason{Code: landscapev1alpha1.HeldNotReviewed}, ""},
		"its kind was protected":  {func(*Gate) {}, change.Reason{Code: landscapev1alpha1.HeldProtectedKind, Kind: "ConfigMap"}, ""},
		"by a former version":     {func(*Gate) {}, change.Reason{Detail: "3 deletions on cluster seed are more than the 2 allowed in one run"}, "it is still held: 3 deletions on cluster seed are more than the 2 allowed in one run"},
		"of another cluster":      {func(*Gate) {}, change.Reason{Code: landscapev1alpha1.HeldTooManyDeletions, Cluster: "other", Count: 3, Limit: 2}, ""},
		"what is approved passes": {func(g *Gate) { g.Approved = map[string]bool{ApprovalID("seed", some[0]): true} }, first.Held[some[0]], ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := gate
			g.PreviouslyHeld = map[change.Ref]change.Reason{some[0]: test.before}
			test.gate(&g)
			assert.Equal(t, test.want, g.Judge("seed", one, 100).Held[some[0]].String())
		})
	}
}

func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		gate      Gate
		deletions []change.Ref
		total     int
		held      int
		reason    string
	}{
		"zero value":              {Gate{}, refs(1000, "v1", "Namespace"), 1000, 0, ""},
		"nothing to delete":       {Gate{MaxDeletions: Limit(0), MaxShare: Limit(0)}, nil, 0, 0, ""},
		"at the number":           {Gate{MaxDeletions: Limit(3)}, refs(3, "v1", "ConfigMap"), 100, 0, ""},
		"beyond the number":       {Gate{MaxDeletions: Limit(3)}, refs(4, "v1", "ConfigMap"), 100, 4, "4 deletions on cluster seed are more than the 3 allowed in one run"},
		"zero holds every":        {Gate{MaxDeletions: Limit(0)}, refs(1, "v1", "ConfigMap"), 100, 1, "every deletion on cluster seed needs approval"},
		"at the share":            {Gate{MaxShare: Limit(50)}, refs(20, "v1", "ConfigMap"), 40, 0, ""},
		"beyond the share":        {Gate{MaxShare: Limit(50)}, refs(21, "v1", "ConfigMap"), 40, 21, "21 of 40 objects on cluster seed are more than the 50% allowed"},
		"share of few":            {Gate{MaxShare: Limit(50)}, refs(MinDeletionsForShare, "v1", "ConfigMap"), MinDeletionsForShare, 0, ""},
		"share of no known total": {Gate{MaxShare: Limit(50)}, refs(11, "v1", "ConfigMap"), 0, 11, "11 of 0"},
		"no share at all":         {Gate{MaxShare: Limit(0)}, refs(1, "v1", "ConfigMap"), 100, 1, "1 of 100"},
		"protected kind":          {Gate{Protected: []string{"Namespace"}}, append(refs(1, "v1", "Namespace"), refs(2, "v1", "ConfigMap")...), 100, 1, "kind Namespace is protected"},
		"protected, by group":     {Gate{Protected: []string{"Etcd.druid.gardener.cloud"}}, append(refs(1, "druid.gardener.cloud/v1alpha1", "Etcd"), refs(1, "other.example.com/v1", "Etcd")...), 100, 1, "kind Etcd"},
		"protected, core group":   {Gate{Protected: []string{"Service."}}, append(refs(1, "v1", "Service"), refs(1, "serving.knative.dev/v1", "Service")...), 100, 1, "kind Service"},
		"any group":               {Gate{Protected: []string{"Etcd"}}, append(refs(1, "druid.gardener.cloud/v1alpha1", "Etcd"), refs(1, "other.example.com/v1", "Etcd")...), 100, 2, "kind Etcd"},
		"rest of a run":           {Gate{MaxDeletions: Limit(5)}.WithEarlierDeletions(3), refs(3, "v1", "ConfigMap"), 100, 3, "6 deletions"},
		"rest of a run, allowed":  {Gate{MaxDeletions: Limit(5)}.WithEarlierDeletions(1).WithEarlierDeletions(1), refs(3, "v1", "ConfigMap"), 100, 0, ""},
		"share of a run":          {Gate{MaxShare: Limit(50)}.WithEarlierDeletions(15), refs(6, "v1", "ConfigMap"), 40, 6, "21 of 40"},
		"nothing left, nothing":   {Gate{MaxDeletions: Limit(5)}.WithEarlierDeletions(9), nil, 100, 0, ""},
		"default, few":            {DefaultGate(), refs(10, "v1", "ConfigMap"), 12, 0, ""},
		"default, many":           {DefaultGate(), refs(101, "v1", "ConfigMap"), 1000, 101, "101 deletions"},
		"default, Shoot":          {DefaultGate(), refs(1, "core.gardener.cloud/v1beta1", "Shoot"), 1000, 1, "protected"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.gate.Judge("seed", c.deletions, c.total)
			assert.Len(t, v.Held, c.held)
			for _, reason := range v.Held {
				assert.Contains(t, reason.String(), c.reason)
			}
			assert.Equal(t, c.held == 0, v.ID == "")
			if v.ID == "" {
				return
			}
			c.gate.Approved = map[string]bool{v.ID: true}
			assert.Empty(t, c.gate.Judge("seed", c.deletions, c.total).Held, "approved")
			assert.Len(t, c.gate.Judge("other", c.deletions, c.total).Held, c.held, "approved on one cluster only")
			more := append(refs(1, "example.com/v1", "Other"), c.deletions...)
			if c.gate.Protected == nil {
				assert.Contains(t, c.gate.Judge("seed", more, c.total).Held, more[0], "approved are these, not one more")
			}
		})
	}
}

// TestJointAndSingleApprovals checks that the id of all held objects approves them all, with or
// without ids of single ones. The id of the remaining objects does, too.
func TestJointAndSingleApprovals(t *testing.T) {
	a, b, c := change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "b"}, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "c"}
	of := func(refs ...change.Ref) string { return ApprovalID("x", refs...) }
	for name, test := range map[string]struct {
		approved []string
		held     int
		passed   []string
	}{
		"alone":                   {[]string{of(a)}, 2, []string{of(a)}},
		"together":                {[]string{of(a, b, c)}, 0, []string{of(a, b, c)}},
		"both":                    {[]string{of(a), of(a, b, c)}, 0, []string{of(a), of(a, b, c)}},
		"alone, and what is left": {[]string{of(a), of(b, c)}, 0, []string{of(a), of(b, c)}},
		"of others":               {[]string{of(a), of(a, b)}, 2, []string{of(a)}},
	} {
		t.Run(name, func(t *testing.T) {
			gate := Gate{MaxDeletions: Limit(0), Approved: map[string]bool{}}
			var passed []string
			gate.Ledger = func(id string, _ []change.Ref) bool { passed = append(passed, id); return true }
			for _, id := range test.approved {
				gate.Approved[id] = true
			}
			v := gate.Judge("x", []change.Ref{a, b, c}, 10)
			assert.Len(t, v.Held, test.held)
			assert.Equal(t, test.passed, passed)
			gate.Ledger = func(string, []change.Ref) bool { return false }
			assert.Len(t, gate.Judge("x", []change.Ref{a, b, c}, 10).Held, 3, "what cannot be taken lets nothing pass")
		})
	}
}

func TestApprovalID(t *testing.T) {
	a, b := change.Ref{APIVersion: "v1", Kind: "Namespace", Name: "a"}, change.Ref{APIVersion: "v1", Kind: "Namespace", Name: "b"}
	id := ApprovalID("c", a, b)
	assert.Len(t, id, 12)
	assert.Equal(t, id, ApprovalID("c", b, a), "their order does not count")
	a.APIVersion = "v2"
	assert.Equal(t, id, ApprovalID("c", a, b), "the version neither")
	assert.NotEqual(t, id, ApprovalID("c", a))
	assert.Empty(t, ApprovalID("c"))
}

func TestGateMarksThePlan(t *testing.T) {
	ns, cm, other := change.Ref{APIVersion: "v1", Kind: "Namespace", Name: "a"}, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "c"}, change.Ref{APIVersion: "v1", Kind: "Namespace", Name: "b"}
	fresh := func() change.Plan {
		p := change.Plan{Items: []change.Item{{Cluster: "one", Object: ns, Action: change.Delete}, {Cluster: "one", Object: cm, Action: change.Delete},
			{Cluster: "one", Object: other, Action: change.Create}, {Cluster: "two", Object: ns, Action: change.Recreate}}}
		p.SortAndCount()
		return p
	}
	p := fresh()
	gate := Gate{Protected: []string{"Namespace"}}
	ids := gate.MarkHeld(&p, map[string]int{"one": 10, "two": 10})
	assert.Len(t, ids, 2)
	assert.Equal(t, change.Summary{Create: 1, Delete: 1, Hold: 2}, p.Summary)
	for _, item := range p.Items {
		if item.Action == change.Hold {
			assert.Regexp(t, "^(delete|recreate) is held: kind Namespace is protected$", item.Reason)
		}
	}
	p = fresh()
	gate.Approved = map[string]bool{ids["one"]: true}
	assert.Equal(t, map[string]string{"two": ids["two"]}, gate.MarkHeld(&p, map[string]int{"one": 10, "two": 10}))
	assert.Equal(t, change.Summary{Create: 1, Delete: 2, Hold: 1}, p.Summary)
}

func TestParseShare(t *testing.T) {
	for text, want := range map[string]int{"25%": 25, "25": 25, " 0% ": 0, "100%": 100} {
		got, err := ParseShare(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "-1%", "101%", "a", "1.5%"} {
		_, err := ParseShare(text)
		assert.ErrorContains(t, err, "is not a percentage")
	}
}

// TestLedgerRefusalHoldsObjects checks that nothing passes if the ledger refuses, and that the
// ledger gets the objects of each approval.
func TestLedgerRefusalHoldsObjects(t *testing.T) {
	a, b, c := change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "b"}, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "c"}
	alone, together := ApprovalID("x", a), ApprovalID("x", b, c)
	for _, takes := range []bool{true, false} {
		asked := map[string][]change.Ref{}
		gate := Gate{MaxDeletions: Limit(0), Approved: map[string]bool{alone: true, together: true}}
		gate.Ledger = func(id string, refs []change.Ref) bool {
			asked[id] = refs
			return takes || id == alone
		}
		v := gate.Judge("x", []change.Ref{a, b, c}, 10)
		assert.Equal(t, []change.Ref{a}, asked[alone])
		assert.ElementsMatch(t, []change.Ref{b, c}, asked[together])
		assert.Len(t, v.Held, map[bool]int{true: 0, false: 2}[takes])
	}
}
