// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/permit"
)

func mapFile(names ...string) string {
	text := ""
	for _, name := range names {
		text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\ndata: {from: " + name + "}\n"
	}
	return text
}

// uidOf returns the UID of a ConfigMap, empty if it does not exist.
func uidOf(t *testing.T, name string) string {
	t.Helper()
	live, err := resourceClient(t, configMapResource, "default").Get(testContext(t), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(t, err)
	return string(live.GetUID())
}

func originOf(t *testing.T, name string) string {
	t.Helper()
	live, err := resourceClient(t, configMapResource, "default").Get(testContext(t), name, metav1.GetOptions{})
	require.NoError(t, err)
	return live.GetAnnotations()[conventions.ManagedResourceKeys().Origin]
}

// TestMovesAreHandedOver checks that an object that moves to another landscape is handed over,
// whichever is synced first.
func TestMovesAreHandedOver(t *testing.T) {
	t.Run("the new one first", func(t *testing.T) {
		from, to := newFolderLandscape(t, "mova", map[string]string{"a.yaml": mapFile("mova-x", "mova-stays")}), newFolderLandscape(t, "movb", map[string]string{"b.yaml": mapFile("movb-own")})
		from.mustSync()
		to.mustSync()
		uid := uidOf(t, "mova-x")
		to.write("b.yaml", mapFile("movb-own", "mova-x"))
		_, err := to.sync()
		require.ErrorContains(t, err, "landscape mova declares this object as well, in a.yaml, and declared it first")
		require.ErrorContains(t, err, "declare it in only one of the two")
		from.write("a.yaml", mapFile("mova-stays"))
		from.mustSync()
		assert.Equal(t, uid, uidOf(t, "mova-x"), "it was not deleted")
		to.mustSync()
		assert.Equal(t, uid, uidOf(t, "mova-x"))
		assert.Equal(t, "landscape.movb/virtual", originOf(t, "mova-x"))
		from.mustSync()
		to.mustSync()
		assert.Equal(t, uid, uidOf(t, "mova-x"))
		to.write("b.yaml", mapFile("movb-own"))
		to.syncUntilDeleted("mova-x", from)
	})
	t.Run("the old one first", func(t *testing.T) {
		from, to := newFolderLandscape(t, "movc", map[string]string{"a.yaml": mapFile("movc-x", "movc-stays")}), newFolderLandscape(t, "movd", map[string]string{"b.yaml": mapFile("movd-own")})
		from.mustSync()
		to.mustSync()
		uid := uidOf(t, "movc-x")
		from.write("a.yaml", mapFile("movc-stays"))
		c := from.mustSync()
		assert.Contains(t, reasonsOf(c, "ConfigMap default/movc-x"), "it may have moved to another landscape")
		assert.Contains(t, reasonsOf(c, "ConfigMap default/movc-x"), "movd")
		assert.Equal(t, uid, uidOf(t, "movc-x"))
		to.write("b.yaml", mapFile("movd-own", "movc-x"))
		to.mustSync()
		assert.Equal(t, "landscape.movd/virtual", originOf(t, "movc-x"))
		from.mustSync()
		assert.Equal(t, uid, uidOf(t, "movc-x"))
		to.mustSync()
		assert.Equal(t, uid, uidOf(t, "movc-x"))
	})
	t.Run("a deletion waits for the others, and then happens", func(t *testing.T) {
		from, other := newFolderLandscape(t, "move", map[string]string{"a.yaml": mapFile("move-x", "move-stays")}), newFolderLandscape(t, "movf", map[string]string{"b.yaml": mapFile("movf-own")})
		from.mustSync()
		stale := other.newConverger() // with files from before the question
		other.mustSync()
		from.write("a.yaml", mapFile("move-stays"))
		from.mustSync()
		require.NoError(t, stale.answerRemovalQuestions(testContext(t)))
		from.mustSync()
		assert.NotEmpty(t, uidOf(t, "move-x"), "who did not look at its files since does not count")
		from.syncUntilDeleted("move-x", other)
	})
	t.Run("what the others have answered is not asked again while the gate holds it", func(t *testing.T) {
		from, other := newFolderLandscape(t, "movi", map[string]string{"a.yaml": mapFile("movi-x", "movi-y", "movi-stays")}), newFolderLandscape(t, "movj", map[string]string{"b.yaml": mapFile("movj-own")})
		from.mustSync()
		other.mustSync()
		from.gate.MaxDeletions = permit.Limit(0)
		from.write("a.yaml", mapFile("movi-stays"))
		var id string
		shown := map[string]bool{}
		require.Eventually(t, func() bool {
			c := from.mustSync()
			held := c.currentRun.report.Held
			for _, h := range c.currentRun.report.HeldDeletions() {
				shown[h.Object+" "+h.Approval] = true
			}
			p, err := c.planDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
			require.NoError(t, err)
			for _, item := range p.Items {
				shown[item.Object.String()+" "+item.Approval] = true
			}
			from.clock.Step(time.Second)
			other.clock.SetTime(from.clock.Now())
			require.NoError(t, other.newConverger().answerRemovalQuestions(testContext(t)))
			if len(held) == 1 && len(held[0].Objects) == 2 {
				id = held[0].Approval
			}
			return id != ""
		}, 20*time.Second, 50*time.Millisecond, "the gate holds both together")
		assert.Len(t, shown, 2, "each object has one id, whoever holds it, in a run and in a dry run")
		from.gate.Approved = map[string]bool{id: true}
		from.mustSync()
		assert.Empty(t, uidOf(t, "movi-x")+uidOf(t, "movi-y"), "one approval lets them pass")
	})
	t.Run("an approval does not wait", func(t *testing.T) {
		from, other := newFolderLandscape(t, "movg", map[string]string{"a.yaml": mapFile("movg-x", "movg-stays")}), newFolderLandscape(t, "movh", map[string]string{"b.yaml": mapFile("movh-own")})
		from.mustSync()
		other.mustSync()
		from.write("a.yaml", mapFile("movg-stays"))
		held := from.mustSync().currentRun.report.HeldDeletions()
		require.Len(t, held, 1)
		from.gate.Approved = map[string]bool{held[0].Approval: true}
		from.mustSync()
		assert.Empty(t, uidOf(t, "movg-x"))
	})
}

// TestTwoLandscapesExchangeObjects checks that two landscapes can swap objects of one kind without
// a deletion, whichever is synced first.
func TestTwoLandscapesExchangeObjects(t *testing.T) {
	for name, order := range map[string]func(one, two *folderLandscape){
		"one after the other": func(one, two *folderLandscape) {
			one.write("x.yaml", mapFile("swap-y"))
			_, err := one.sync()
			require.ErrorContains(one, err, "landscape swap-two declares this object as well")
			two.write("y.yaml", mapFile("swap-x"))
		},
		"together": func(one, two *folderLandscape) {
			one.write("x.yaml", mapFile("swap-y"))
			two.write("y.yaml", mapFile("swap-x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := newFolderLandscape(t, "swap-one", map[string]string{"a.yaml": mapFile("swap-a"), "x.yaml": mapFile("swap-x")}), newFolderLandscape(t, "swap-two", map[string]string{"b.yaml": mapFile("swap-b"), "y.yaml": mapFile("swap-y")})
			one.mustSync()
			two.mustSync()
			x, y := uidOf(t, "swap-x"), uidOf(t, "swap-y")
			order(one, two)
			require.Eventually(t, func() bool {
				_, first := one.sync()
				_, second := two.sync()
				return first == nil && second == nil
			}, time.Minute, 50*time.Millisecond, "both are applied")
			assert.Equal(t, "landscape.swap-one/virtual", originOf(t, "swap-y"))
			assert.Equal(t, "landscape.swap-two/virtual", originOf(t, "swap-x"))
			assert.Equal(t, x, uidOf(t, "swap-x"))
			assert.Equal(t, y, uidOf(t, "swap-y"))
			one.mustSync()
			two.mustSync()
			assert.Equal(t, []string{x, y}, []string{uidOf(t, "swap-x"), uidOf(t, "swap-y")})
		})
	}
}

// syncUntilDeleted syncs this landscape and the others until a ConfigMap no longer exists.
func (w *folderLandscape) syncUntilDeleted(name string, others ...*folderLandscape) {
	w.Helper()
	require.Eventually(w, func() bool {
		w.mustSync()
		w.clock.Step(time.Second)
		for _, o := range others {
			o.clock.SetTime(w.clock.Now())
			require.NoError(w, o.newConverger().answerRemovalQuestions(testContext(w.T)))
		}
		return uidOf(w.T, name) == ""
	}, 20*time.Second, 50*time.Millisecond)
}

func reasonsOf(c *Converger, object string) string {
	text := ""
	for _, h := range c.currentRun.report.HeldDeletions() {
		if h.Object == object {
			text += h.Reason + "\n"
		}
	}
	return text
}

// TestTwoLandscapesDeclareTheSame checks that two landscapes that declare the same object do not
// overwrite each other.
func TestTwoLandscapesDeclareTheSame(t *testing.T) {
	one, two := newFolderLandscape(t, "two-a", map[string]string{"files/a.yaml": mapFile("two-x")}), newFolderLandscape(t, "two-b", map[string]string{"b.yaml": mapFile("two-x")})
	one.mustSync()
	before, err := resourceClient(t, configMapResource, "default").Get(testContext(t), "two-x", metav1.GetOptions{})
	require.NoError(t, err)
	for range 3 {
		_, err := two.sync()
		require.ErrorContains(t, err, "b.yaml:2: cluster virtual: ConfigMap default/two-x")
		require.ErrorContains(t, err, "landscape two-a declares this object as well, in files/a.yaml, and declared it first")
		one.mustSync()
	}
	after, err := resourceClient(t, configMapResource, "default").Get(testContext(t), "two-x", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before.GetResourceVersion(), after.GetResourceVersion(), "nobody has written")
}

// TestMovesFrom checks that a run waits for others only if each of its problems is an object of
// theirs, or follows from one.
func TestMovesFrom(t *testing.T) {
	has := func(name string) error {
		return &apply.ObjectError{Reason: apply.ReasonOwnedElsewhere, Err: &declaredElsewhereError{landscape: name, file: "x.yaml"}}
	}
	follows := &apply.FollowsError{Err: errors.New("Shoot a/b: not reconciled")}
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"nothing":                    {nil, nil},
		"one":                        {fmt.Errorf("declarations: %w", apply.Errors{has("a").(*apply.ObjectError)}), []string{"a"}},
		"several":                    {errors.Join(fmt.Errorf("declarations: %w", errors.Join(has("a"), has("b"), has("a"))), follows), []string{"a", "b"}},
		"what is skipped for it":     {errors.Join(has("a"), &apply.ObjectError{Reason: apply.ReasonSkippedDependency, Message: "waits"}), []string{"a"}},
		"another object is no good":  {errors.Join(has("a"), &apply.ObjectError{Reason: apply.ReasonInvalid, Message: "no"}), nil},
		"something else went wrong":  {errors.Join(has("a"), fmt.Errorf("reading: %w", errors.New("no connection"))), nil},
		"another owner of an object": {errors.Join(has("a"), &apply.ObjectError{Reason: apply.ReasonOwnedElsewhere, Message: "it belongs to x"}), nil},
		"a text like it":             {&apply.ObjectError{Reason: apply.ReasonOwnedElsewhere, Message: (&declaredElsewhereError{landscape: "a"}).Error()}, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, PendingMoveSources(test.err)) })
	}
}

// TestIgnoredObjectCountsAsDeclared checks that an object that a landscape declares, and ignores by
// an annotation, is not deleted by another one that declared it as well.
func TestIgnoredObjectCountsAsDeclared(t *testing.T) {
	from := newFolderLandscape(t, "ign-from", map[string]string{"b.yaml": mapFile("ign-b", "ign-x")})
	to := newFolderLandscape(t, "ign-to", map[string]string{"a.yaml": mapFile("ign-a")})
	from.mustSync()
	to.mustSync()
	to.write("a.yaml", mapFile("ign-a", "ign-x"))
	_, err := to.sync()
	require.ErrorContains(t, err, "landscape ign-from declares this object as well")
	from.write("b.yaml", strings.ReplaceAll(mapFile("ign-b", "ign-x"), "metadata: {name: ign-x,", "metadata: {annotations: {resources.gardener.cloud/mode: Ignore}, name: ign-x,"))
	from.mustSync()
	to.write("a.yaml", mapFile("ign-a"))
	to.mustSync()
	for range 3 {
		from.clock.Step(time.Second)
		to.clock.Step(time.Second)
		from.mustSync()
		assert.Contains(t, reasonsOf(to.mustSync(), "ConfigMap default/ign-x"), "ign-from")
	}
	assert.NotEmpty(t, uidOf(t, "ign-x"))
}
