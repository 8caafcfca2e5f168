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

// TestDamagedCache: a damaged cache is fetched anew, before or after a restart, and no revision
// becomes invalid.
func TestDamagedCache(t *testing.T) {
	w := newWorld(t)
	stop := w.start()
	s := w.served("damaged")
	w.follow(s, repositoryURL(gittest.ServeHTTP(t, s.bare.Root).URL))
	w.applied(s, "", "1")
	for i, ending := range []string{".pack", ".idx"} {
		w.cut(s, ending)
		value := string(rune('2' + 2*i))
		w.applied(s, s.set(value), value)
		w.cut(s, ending)
		w.restarted(&stop)
		value = string(rune('3' + 2*i))
		l := w.applied(s, s.set(value), value)
		for _, r := range l.Status.History {
			assert.NotContains(t, r.Message, "is not valid")
		}
	}
}

// cut truncates files in the cache of a source.
func (w *world) cut(s *served, ending string) {
	w.Helper()
	found := 0
	require.NoError(w, filepath.WalkDir(filepath.Join(w.cache, "sources", w.namespace, s.name), func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ending) {
			found++
			require.NoError(w, os.Chmod(path, 0o600))
			err = os.Truncate(path, 50)
		}
		return err
	}))
	require.Positive(w, found)
}

// explosive is an evaluator that panics while armed, in a goroutine of the loader.
type explosive struct{ armed atomic.Bool }

func (e *explosive) Evaluate(ctx context.Context, pkg evaluation.Package) (evaluation.Result, error) {
	if e.armed.Load() {
		panic("index out of range")
	}
	return evaluation.InProcess{}.Evaluate(ctx, pkg)
}

// TestPanics: a panic is an error of its revision. The operator and other Landscapes continue, and
// this Landscape recovers.
func TestPanics(t *testing.T) {
	w := newWorld(t)
	e := &explosive{}
	w.start(func(r *Role) { r.Evaluator = e })
	s, other := w.served("explosive"), w.served("bystander")
	url := gittest.ServeHTTP(t, s.bare.Root).URL
	w.follow(s, repositoryURL(url))
	w.follow(other, repositoryURL(gittest.ServeHTTP(t, other.bare.Root).URL))
	w.applied(s, "", "1")
	w.applied(other, "", "1")

	e.armed.Store(true)
	next := s.push("cue", map[string]string{"b.cue": "apiVersion: \"v1\"\nkind: \"ConfigMap\"\nmetadata: {name: \"cue\", namespace: \"" + s.namespace +
		"\", annotations: \"landscape.pergola.dev/cluster\": \"runtime\"}\ndata: value: \"x\"\n"})
	l := w.ready(s.name, "False ApplyFailed: ")
	assert.Contains(t, readiness(l), "a fault of Pergola (index out of range): please report it")
	assert.NotContains(t, readiness(l), "goroutine", "the stack is only logged")
	assert.Contains(t, w.log.String(), "explosive).Evaluate")
	assert.Equal(t, landscapev1alpha1.SyncFailed, l.Status.History[0].Result)
	w.applied(other, other.set("2"), "2")
	e.armed.Store(false)
	w.applied(s, next, "1")
	assert.Equal(t, "x", w.value("cue"))
}
