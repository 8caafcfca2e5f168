// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes/evaluation"
)

// evaluatorFunc adapts a function to an evaluator.
type evaluatorFunc func(ctx context.Context, pkg evaluation.Package) (evaluation.Result, error)

func (f evaluatorFunc) Evaluate(ctx context.Context, pkg evaluation.Package) (evaluation.Result, error) {
	return f(ctx, pkg)
}

const namespaceCUE = `x: {apiVersion: "v1", kind: "Namespace", metadata: name: "of-cue"}`

// evaluateEndlessly blocks until the context ends for the file bad.cue.
func evaluateEndlessly(ctx context.Context, pkg evaluation.Package) (evaluation.Result, error) {
	if strings.HasSuffix(pkg.Files[0].Name, "bad.cue") {
		<-ctx.Done()
		return evaluation.Result{}, ctx.Err()
	}
	return evaluation.InProcess{}.Evaluate(ctx, pkg)
}

func TestEvaluatorIsNotUsedWithoutCUE(t *testing.T) {
	var used atomic.Int32
	opts := Options{Evaluator: evaluatorFunc(func(ctx context.Context, pkg evaluation.Package) (evaluation.Result, error) {
		used.Add(1)
		return evaluation.InProcess{}.Evaluate(ctx, pkg)
	})}
	files := map[string]string{"landscape.yaml": bareConfig, "a.yaml": namespace("a")}
	_, violations := load(t, tree(files), ".", opts)
	assert.Empty(t, violations)
	assert.Zero(t, used.Load())
	files["b/a.cue"], files["b/c.yaml"], files["z.yaml"] = namespaceCUE, namespace("c"), namespace("of-cue")
	landscape, violations := load(t, tree(files), ".", opts)
	assert.Equal(t, []string{"z.yaml:4:3 Duplicate the object is already declared in b/a.cue:1:1; remove one of them, or choose another name"}, violations)
	assert.Equal(t, []string{"Namespace a", "Namespace c", "Namespace of-cue"}, names(landscape), "in the order of folders and files")
	assert.EqualValues(t, 1, used.Load())
}

// TestFilesThatCUELeavesOut: files that CUE ignores declare nothing.
func TestFilesThatCUELeavesOut(t *testing.T) {
	object := func(name string) string {
		return "\n" + name + `: {apiVersion: "v1", kind: "Namespace", metadata: name: "` + name + `"}`
	}
	landscape, violations := load(t, tree(map[string]string{
		"landscape.yaml": bareConfig, "c/a.cue": "package c" + object("a"), "c/b.cue": "@ignore()\n\npackage c" + object("b"),
		"c/only.cue": "@ignore()" + object("only"), "c/x_test.cue": "package c" + object("x"), "c/.y.cue": "package c" + object("y"),
		"c/unnamed.cue": "package _" + object("unnamed"),
	}), ".", Options{})
	require.Len(t, violations, 1)
	assert.Contains(t, violations[0], "c/x_test.cue:2:1 NotSupported declares nothing")
	assert.Equal(t, []string{"Namespace a", "Namespace unnamed"}, names(landscape))
	_, violations = load(t, tree(map[string]string{"landscape.yaml": bareConfig, "c/a.cue": "@if(staging)\npackage c" + object("a")}), ".", Options{})
	require.Len(t, violations, 1)
	assert.Contains(t, violations[0], "c/a.cue:1:1 Forbidden @if is not allowed")
	found, violations2 := parse(t, "x_test.cue", "package c"+object("a"), Options{})
	assert.Empty(t, violations2)
	assert.Len(t, found, 1, "a file that is given by its name counts, as it does for the cue command")
}

// TestTimeForAllCUEFiles: after a timeout the rest of the landscape is loaded.
func TestTimeForAllCUEFiles(t *testing.T) {
	fsys := tree(map[string]string{"landscape.yaml": bareConfig, "a.yaml": namespace("a"), "bad.cue": namespaceCUE, "b/good.cue": namespaceCUE})
	landscape, violations := load(t, fsys, ".", Options{Evaluator: evaluatorFunc(evaluateEndlessly), Limits: Limits{Evaluation: 100 * time.Millisecond}})
	assert.Equal(t, []string{"bad.cue:1:1 Invalid the CUE files of the landscape took longer than 100ms in total: this one was skipped"}, violations)
	assert.Equal(t, []string{"Namespace a", "Namespace of-cue"}, names(landscape))
}

func TestLoadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fsys := tree(map[string]string{"landscape.yaml": bareConfig, "bad.cue": namespaceCUE})
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	started := time.Now()
	_, _, err := LoadFS(ctx, fsys, ".", Options{Evaluator: evaluatorFunc(evaluateEndlessly)})
	require.ErrorIs(t, err, context.Canceled)
	assert.Less(t, time.Since(started), 500*time.Millisecond)
	_, _, err = LoadFS(ctx, tree(map[string]string{"landscape.yaml": bareConfig}), ".", Options{})
	require.ErrorIs(t, err, context.Canceled, "also without CUE")
	_, _, err = Parse(ctx, "a.cue", []byte(namespaceCUE), Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestEvaluatorThatFails: a failure of the evaluator is an error, not a finding about the files.
func TestEvaluatorThatFails(t *testing.T) {
	broken := errors.New("no processes left")
	opts := Options{Evaluator: evaluatorFunc(func(context.Context, evaluation.Package) (evaluation.Result, error) {
		return evaluation.Result{}, broken
	})}
	_, _, err := LoadFS(t.Context(), tree(map[string]string{"landscape.yaml": bareConfig, "a.cue": namespaceCUE}), ".", opts)
	require.ErrorIs(t, err, broken)
	_, _, err = Parse(t.Context(), "a.cue", []byte(namespaceCUE), opts)
	require.ErrorContains(t, err, "reading a.cue: no processes left")
}

// TestLongLinesAreReadInTime: each character is visited once, so that time is linear.
func TestLongLinesAreReadInTime(t *testing.T) {
	for name, text := range map[string]string{
		"flow": strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000), "maps": strings.Repeat("{a: ", 100_000),
		"dashes": strings.Repeat("- ", 500_000), "keys": strings.Repeat("? ", 500_000), "colons": strings.Repeat("a: ", 300_000), "text": strings.Repeat("a b ", 250_000),
		"closing": strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + strings.Repeat(" ", 200_000), "quotes": "a: [" + strings.Repeat(`"b", `, 200_000),
		"lines below dashes": strings.Repeat("- ", 200_000) + "[\n" + strings.Repeat("a,\n", 200_000), "JSON in one line": strings.Repeat("{}", 100_000),
	} {
		started := time.Now()
		_, violations := parse(t, "a.yaml", text, Options{})
		assert.NotEmpty(t, violations)
		assert.Less(t, time.Since(started), 30*time.Second, "%s: looking again and again would take minutes", name)
	}
}

// TestMergeConflicts: in CUE and JSON a conflict is one finding instead of several parser errors. A
// YAML text may contain such lines.
func TestMergeConflicts(t *testing.T) {
	const sides = "<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> main\n"
	for name, want := range map[string]string{
		"x.cue":  "live/x.cue:2:1 Invalid a merge conflict was left here: keep the correct lines",
		"x.json": "live/x.json:2:1 Invalid a merge conflict was left here: keep the correct lines",
	} {
		_, violations := load(t, tree(map[string]string{"live/landscape.yaml": withLayers("[]"), "live/" + name: "\n" + sides}), "live", Options{})
		require.Len(t, violations, 1, name)
		assert.Contains(t, "live/"+violations[0], want)
	}
	_, violations := load(t, tree(map[string]string{
		"live/landscape.yaml": withLayers("[]"),
		"live/x.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata:\n  how: |\n    <<<<<<< HEAD\n    =======\n    >>>>>>> main\n",
	}), "live", Options{})
	assert.Empty(t, violations)
}

// TestPackagesWithoutObjects: CUE files without an object get a warning, unless they are empty.
func TestPackagesWithoutObjects(t *testing.T) {
	const object = `{apiVersion: "v1", kind: "Namespace", metadata: name: "hidden"}`
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"an object":           {map[string]string{"a.cue": namespaceCUE}, nil},
		"comments":            {map[string]string{"a.cue": "package p\n\n// nothing yet\n"}, nil},
		"a hidden field":      {map[string]string{"a.cue": "package p\n\n_a: " + object}, []string{"a.cue:3:1 NotSupported declares nothing: the CUE files of this package make no object, and the package has only files of the same folder and package; fields whose names begin with _ or # are hidden, as _a"}},
		"another package":     {map[string]string{"a.cue": "package p\n\na: _b\n_b: " + object, "b.cue": "package q\n\n_b: metadata: labels: x: \"y\"\n"}, []string{"b.cue:3:1 NotSupported declares nothing: the CUE files of this package make no object, and the package has only files of the same folder and package; fields whose names begin with _ or # are hidden, as _b"}},
		"a loop over nothing": {map[string]string{"a.cue": "package p\n\nfor n in [] {a: " + object + "}"}, []string{"a.cue:3:1 NotSupported declares nothing: the CUE files of this package make no object, and the package has only files of the same folder and package"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.files["landscape.yaml"] = bareConfig
			_, violations := load(t, tree(test.files), ".", Options{})
			assert.Equal(t, test.want, violations)
		})
	}
}
