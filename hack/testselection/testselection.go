// SPDX-License-Identifier: Apache-2.0

// Package testselection reads tests.txt, the list of tests that `make check` and `make test` skip
// and `make test-all` runs. Scripts skip whole tests by name. A test with many points or parts asks
// this package which of them to try.
package testselection

import (
	_ "embed"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

//go:embed tests.txt
var listText string

// listedTest is a line of tests.txt: a test that `make check` or `make test` skips or samples.
type listedTest struct {
	speed, test string
	// parts are the parts that `make test` runs nevertheless.
	parts []string
}

func readList() []listedTest {
	var out []listedTest
	for line := range strings.Lines(listText) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		test, parts, _ := strings.Cut(line, ":")
		words := strings.Fields(test)
		l := listedTest{speed: words[0], test: words[1]}
		for part := range strings.SplitSeq(parts, ",") {
			if part = strings.TrimSpace(part); part != "" {
				l.parts = append(l.parts, part)
			}
		}
		out = append(out, l)
	}
	return out
}

// listedParts returns the parts of a test that `make test` runs.
func listedParts(t testing.TB) []string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	for _, l := range readList() {
		if l.test == name && len(l.parts) > 0 {
			return l.parts
		}
	}
	t.Fatalf("hack/testselection/tests.txt does not name the parts of %s that make test runs", name)
	return nil
}

// Points yields the points of a test, counted from 1, infinitely many; in `make test`, only listed
// points.
func Points(t testing.TB) iter.Seq[int] {
	t.Helper()
	if !testing.Short() {
		return func(yield func(int) bool) {
			for n := 1; yield(n); n++ {
			}
		}
	}
	var points []int
	for _, part := range listedParts(t) {
		n, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(fmt.Errorf("hack/testselection/tests.txt: a point of %s: %w", t.Name(), err))
		}
		points = append(points, n)
	}
	return slices.Values(points)
}

// HasPart reports whether a test tries a part; in `make test`, only if the part is listed. A test
// that passes without asking for a listed part fails: the part was renamed, and nothing would try
// it.
func HasPart(t testing.TB, part string) bool {
	t.Helper()
	if !testing.Short() {
		return true
	}
	parts := listedParts(t)
	seen, known := requestedParts.LoadOrStore(t.Name(), &sync.Map{})
	if !known {
		t.Cleanup(func() {
			requestedParts.Delete(t.Name())
			for _, p := range unrequestedParts(parts, seen.(*sync.Map)) {
				if !t.Failed() && !t.Skipped() {
					t.Errorf("hack/testselection/tests.txt lists %q, which %s does not have", p, t.Name())
				}
			}
		})
	}
	seen.(*sync.Map).Store(part, true)
	return slices.Contains(parts, part)
}

// requestedParts has, for each running test, the set of parts that it has asked for.
var requestedParts sync.Map

func unrequestedParts(parts []string, seen *sync.Map) []string {
	return slices.DeleteFunc(slices.Clone(parts), func(part string) bool { _, is := seen.Load(part); return is })
}

// SuiteHasPart is Has for parts that all tests of a package use; the package is listed by its
// folder.
func SuiteHasPart(folder, part string) bool {
	return !testing.Short() || slices.ContainsFunc(readList(), func(l listedTest) bool { return l.test == folder && slices.Contains(l.parts, part) })
}
