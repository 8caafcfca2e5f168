// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// TestHintsReachTheCluster: a printed command can be copied, because it has the flags of this one.
func TestHintsReachTheCluster(t *testing.T) {
	c, kubeconfig := testServer(t)
	for _, namespace := range []string{"garden", "other"} {
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		l := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "landscape.pergola.dev/v1alpha1", "kind": "Landscape",
			"metadata": map[string]any{"name": "one", "namespace": namespace}, "spec": map[string]any{"source": map[string]any{"url": "https://git.example.org/a.git"}}}}
		require.NoError(t, c.Create(t.Context(), l))
		l.Object["status"] = map[string]any{"held": []any{
			map[string]any{"cluster": "runtime", "object": "ConfigMap a/b", "reason": "nobody has seen it", "approval": "111111111111"},
			map[string]any{"cluster": "runtime", "object": "ConfigMap a/c", "reason": "too many", "approval": "222222222222"},
		}}
		require.NoError(t, c.Status().Update(t.Context(), l))
	}
	flags := " --kubeconfig " + kubeconfig + " --context test"
	told := func(args ...string) string {
		t.Helper()
		o := pergola(t, append(args, "--kubeconfig", kubeconfig, "--context", "test")...)
		require.Empty(t, o.stderr)
		return o.stdout
	}
	assert.Contains(t, told("history", "one"), "approve it with: pergola approve garden/one 111111111111"+flags+"\n")
	assert.Contains(t, told("rollback", "one", strings.Repeat("a", 40)), "\n  pergola rollback one --unpin"+flags+"\n")
	assert.Equal(t, "Suspended one until pergola resume one"+flags+".\n", told("suspend", "one", "--reason", "x"))
	assert.Contains(t, told("suspend", "one", "-n", "other", "--reason", "x"), "until pergola resume other/one"+flags+".\n")

	// The time has the format in which the suspension is shown.
	until := told("suspend", "one", "--reason", "x", "--for", "2h")
	assert.Regexp(t, `^Suspended one until 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\.\n`, until)
	at, _, _ := strings.Cut(strings.TrimPrefix(until, "Suspended one until "), ".\n")
	assert.Contains(t, told("suspend", "one", "--reason", "y"), "It replaces the previous suspension by "+callingUser()+" until "+at+": x\n")

	approved := told("approve", "one", "111111111111")
	assert.Equal(t, "  ConfigMap a/b on cluster runtime, held because nobody has seen it\nApproved; nothing is applied until one is resumed, because it is suspended.\n", approved)
	told("resume", "one")
	assert.Equal(t, "Approved; the operator applies one again.\n", told("approve", "one", "111111111111")[strings.Index(approved, "Approved"):])
}

// TestCommandsGetClusterFlags: only commands about the same Landscape get the flags.
func TestCommandsGetClusterFlags(t *testing.T) {
	const text = "pergola history garden/one lists them with reasons, pergola approve garden/one 1 approves them (pergola rollback garden/one --unpin); pergola resume garden/one"
	o := &objectFlags{context: "a$1b"}
	assert.Equal(t, "pergola history garden/one --context 'a$1b' lists them with reasons, pergola approve garden/one --context 'a$1b' 1 approves them "+
		"(pergola rollback garden/one --context 'a$1b' --unpin); pergola resume garden/one --context 'a$1b'", o.withCommandFlags(text, "garden/one"))
	assert.Equal(t, text, (&objectFlags{}).withCommandFlags(text, "garden/one"))
	for _, other := range []string{"pergola history garden/one-more", "pergola history shows it", "pergola sync garden/one.b"} {
		assert.Equal(t, other, o.withCommandFlags(other, "garden/one"))
	}
	assert.Equal(t, " --kubeconfig a --kubeconfig 'seed=b c'", accessFlags{kubeconfigs: []string{"a", "seed=b c"}}.commandFlags())
}

func TestApprovedBy(t *testing.T) {
	here := landscapev1alpha1.HeldDeletion{Cluster: "runtime", Approval: "1", Together: "2"}
	there := landscapev1alpha1.HeldDeletion{Cluster: "eu-1", Approval: "1"}
	for _, test := range []struct {
		ids         []string
		onSeed      bool
		here, there bool
	}{
		{[]string{"2"}, false, true, false},
		{[]string{"runtime/1"}, false, true, false},
		{[]string{"eu-1/1"}, false, false, true},
		{[]string{"1"}, true, false, true},
		{[]string{""}, false, false, false},
	} {
		assert.Equal(t, test.here, isApprovedBy(here, test.ids, test.onSeed), test.ids)
		assert.Equal(t, test.there, isApprovedBy(there, test.ids, test.onSeed), test.ids)
	}
}

// TestHistoryIsCutToTheTerminal: lines are cut on a terminal, but not in a file or a pipe.
func TestHistoryIsCutToTheTerminal(t *testing.T) {
	subject := strings.Repeat("ä long subject ", 30) + "with an end"
	l := &landscapev1alpha1.Landscape{}
	l.Status.History = []landscapev1alpha1.SyncRecord{{Revision: "main@sha1:a", Trigger: "Commit", StartTime: metav1.NewTime(time.Now()), Result: landscapev1alpha1.SyncSucceeded, Subject: subject}}
	for _, width := range []int{0, 80, 200, 1000} {
		var b strings.Builder
		require.NoError(t, printHistory(&b, l, &objectFlags{}, width))
		line := strings.Split(b.String(), "\n")[1]
		if width == 0 || width == 1000 {
			assert.True(t, strings.HasSuffix(line, "with an end"), width)
			continue
		}
		assert.Len(t, []rune(line), width)
		assert.True(t, strings.HasSuffix(line, "…"), width)
	}
}
