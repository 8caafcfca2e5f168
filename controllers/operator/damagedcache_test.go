// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestDamagedCache: a damaged cache is fetched again, before or after a restart, and no revision
// becomes invalid.
func TestDamagedCache(t *testing.T) {
	w := newTestEnv(t)
	stop := w.startOperator()
	s := w.newServedRepository("damaged")
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL))
	w.awaitApplied(s, "", "1")
	for i, ending := range []string{".pack", ".idx"} {
		w.truncateCache(s, ending)
		value := string(rune('2' + 2*i))
		w.awaitApplied(s, s.pushValue(value), value)
		w.truncateCache(s, ending)
		w.restartOperator(&stop)
		value = string(rune('3' + 2*i))
		l := w.awaitApplied(s, s.pushValue(value), value)
		for _, r := range l.Status.History {
			assert.NotContains(t, r.Message, "is not valid")
		}
	}
}

// truncateCache truncates files in the cache of a source.
func (w *testEnv) truncateCache(s *servedRepository, ending string) {
	w.Helper()
	found := 0
	require.NoError(w, filepath.WalkDir(filepath.Join(w.cacheDir, "sources", w.namespace, s.name), func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ending) {
			found++
			require.NoError(w, os.Chmod(path, 0o600))
			err = os.Truncate(path, 50)
		}
		return err
	}))
	require.Positive(w, found)
}

// panickingEvaluator is an evaluator that panics while armed, in a goroutine of the loader.
type panickingEvaluator struct{ isArmed atomic.Bool }

func (e *panickingEvaluator) Evaluate(ctx context.Context, pkg evaluation.Package) (evaluation.Result, error) {
	if e.isArmed.Load() {
		panic("index out of range")
	}
	return evaluation.InProcess{}.Evaluate(ctx, pkg)
}

// TestPanicIsARevisionError: a panic is an error of its revision. The operator and other Landscapes
// continue, and this Landscape recovers.
func TestPanicIsARevisionError(t *testing.T) {
	w := newTestEnv(t)
	e := &panickingEvaluator{}
	w.startOperator(func(r *Role) { r.Evaluator = e })
	s, other := w.newServedRepository("explosive"), w.newServedRepository("bystander")
	url := gittest.ServeHTTP(t, s.server.Root).URL
	w.followServed(s, repositoryURL(url))
	w.followServed(other, repositoryURL(gittest.ServeHTTP(t, other.server.Root).URL))
	w.awaitApplied(s, "", "1")
	w.awaitApplied(other, "", "1")

	e.isArmed.Store(true)
	next := s.push("cue", map[string]string{"b.cue": "apiVersion: \"v1\"\nkind: \"ConfigMap\"\nmetadata: {name: \"cue\", namespace: \"" + s.namespace +
		"\", annotations: \"landscape.pergola.dev/cluster\": \"runtime\"}\ndata: value: \"x\"\n"})
	l := w.awaitReady(s.name, "False ApplyFailed: ")
	assert.Contains(t, readyText(l), "a fault of Pergola (index out of range): please report it")
	assert.NotContains(t, readyText(l), "goroutine", "the stack is only logged")
	assert.Contains(t, w.log.String(), "panickingEvaluator).Evaluate")
	assert.Equal(t, landscapev1alpha1.SyncFailed, l.Status.History[0].Result)
	w.awaitApplied(other, other.pushValue("2"), "2")
	e.isArmed.Store(false)
	w.awaitApplied(s, next, "1")
	assert.Equal(t, "x", w.configMapValue("cue"))
}
