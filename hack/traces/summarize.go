// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// traces maps the normalised name of each object to its lines.
type traces map[string][]string

// summarize makes traces of Pergola's requests. Answers to other clients only tell the previous
// state of an object.
func summarize(events []*event) traces {
	byObject := map[objectID][]*event{}
	for _, e := range events {
		byObject[e.objectKey()] = append(byObject[e.objectKey()], e)
	}
	same := map[string][][]string{}
	for o, of := range byObject {
		if lines, name := foldLines(traceObject(of)), o.String(); len(lines) > 0 {
			same[name] = append(same[name], lines)
		}
	}
	out := traces{}
	for name, all := range same {
		// Objects of one name are sorted by their lines, as their order differs between runs.
		slices.SortFunc(all, slices.Compare[[]string])
		for n, lines := range all {
			key := name
			if len(all) > 1 {
				key = fmt.Sprintf("%s (%d of %d)", name, n+1, len(all))
			}
			out[key] = lines
		}
	}
	maps.Copy(out, findOrderViolations(events))
	return out
}

// traceLine is one request: its options and outcome (head), and the paths that it changed.
type traceLine struct {
	words []string
	paths []string
}

func (l traceLine) String() string {
	return strings.Join(append(slices.Clone(l.words), l.paths...), " ")
}

// traceObject returns the lines of one object in the order of etcd's revisions, from which the
// order of the log can differ.
func traceObject(events []*event) (lines []traceLine) {
	type versioned struct {
		*event
		at int64
	}
	var all []versioned
	last := int64(0)
	for _, e := range events {
		if v := e.answerRevision(); v > 0 {
			last = v
		}
		all = append(all, versioned{e, last})
	}
	slices.SortStableFunc(all, func(a, b versioned) int { return cmp.Compare(a.at, b.at) })
	var before map[string]any
	was := int64(0)
	for _, e := range all {
		l := traceLine{words: e.requestWords()}
		after := before
		switch {
		case !e.isSuccess():
			l.words = append(l.words, fmt.Sprint("failed: ", e.ResponseStatus.Code))
		case !e.canChangeData():
		case e.hasObjectAnswer():
			if after = flattenObject(e.ResponseObject); stringAt(e.ResponseObject, "kind") == "PartialObjectMetadata" {
				for path, value := range before {
					if !strings.HasPrefix(path, ".metadata.") {
						after[path] = value
					}
				}
			}
			switch {
			case e.ResponseStatus.Code == 201:
				l.words, l.paths = append(l.words, "created"), changedPaths(nil, after)
			case before == nil:
				// created before the recording, or by the server
				l.words = append(l.words, "known from here")
			default:
				if l.paths = changedPaths(before, after); len(l.paths) == 0 && e.answerRevision() == was {
					l.words = append(l.words, "nothing")
				} else if len(l.paths) == 0 {
					l.words = append(l.words, "nothing but times")
				}
			}
			was = e.answerRevision()
		case e.Verb == "delete" && e.ObjectRef.Subresource == "":
			after = nil
		case e.ResponseStatus.Code == 201:
			l.words = append(l.words, "created, not recorded")
		case e.ResponseObject == nil:
			l.words = append(l.words, "not recorded")
		}
		if before = after; e.isPergola() {
			lines = append(lines, l)
		}
	}
	return lines
}

// requestWords returns the options of the request: verb, subresource, user agent, parameters.
func (e *event) requestWords() []string {
	words := []string{e.Verb}
	if e.ObjectRef.Subresource != "" {
		words[0] += "/" + e.ObjectRef.Subresource
	}
	if a := e.agent(); a != agents[0] && slices.Contains(agents, a) {
		words = append(words, "agent="+a)
	}
	for _, key := range []string{"fieldManager", "force", "dryRun"} {
		if v := e.query(key); v != "" {
			words = append(words, key+"="+v)
		}
	}
	if strings.HasPrefix(e.Verb, "delete") {
		options, _ := e.RequestObject.(map[string]any)
		if p := stringAt(options, "propagationPolicy"); p != "" {
			words = append(words, p)
		}
		if p, _ := options["preconditions"].(map[string]any); p != nil {
			words = append(words, "preconditions="+strings.Join(sortedKeys(p), ","))
		}
	}
	return words
}

// asynchronousFieldPattern matches fields that follow pods, servers and controllers: conditions,
// progress, digests of live objects, and whether a data Secret was seen in time (secretsVersion).
// Timing decides how often they are written, and together with which others.
var asynchronousFieldPattern = regexp.MustCompile(`^[-+~](\.status\.(conditions\[|lastOperation\.(description|progress)$|summary\b|secretsVersion$)|` +
	`\.status\.resources\[.*\]\.liveDigest$|\.data\[entries\.json\]\[.*\]\.live$)`)

// incidentalLinePattern matches lines that need not occur in another run: updates of times only
// (clocks, lease renewals), and write conflicts.
var incidentalLinePattern = regexp.MustCompile(`nothing but times$|^(patch|update).* failed: 409$`)

// foldLines makes texts of lines: one for equal lines in a row, with their number. The meanwhile
// fields in all writes of an object until its deletion are one text, too.
func foldLines(lines []traceLine) (out []string) {
	var numbers []int
	put := func(text string, number int) {
		if last := len(out) - 1; last >= 0 && out[last] == text {
			numbers[last] += number
		} else {
			out, numbers = append(out, text), append(numbers, number)
		}
	}
	writes, paths := 0, map[string]bool{}
	end := func() {
		if writes > 0 {
			put("meanwhile "+strings.Join(sortedKeys(paths), " "), writes)
		}
		writes = 0
		clear(paths)
	}
	for _, l := range lines {
		if l.words[0] == "delete" || slices.Contains(l.words, "created") {
			end()
		}
		all := len(l.paths)
		l.paths = slices.DeleteFunc(l.paths, func(p string) bool {
			is := asynchronousFieldPattern.MatchString(p)
			if is {
				paths[p[1:]] = true
			}
			return is
		})
		dropped := all - len(l.paths)
		writes += min(dropped, 1)
		if text := l.String(); len(l.paths) > 0 || dropped == 0 && !incidentalLinePattern.MatchString(text) {
			put(text, 1)
		}
	}
	end()
	for i, n := range numbers {
		if n > 1 {
			out[i] += fmt.Sprintf(" (%d times)", n)
		}
	}
	return out
}

// print writes the name of each object and its lines below; parse reads that format.
func (t traces) print(to io.Writer) {
	for _, name := range sortedKeys(t) {
		fmt.Fprintf(to, "%s\n  %s\n", name, strings.Join(t[name], "\n  "))
	}
}

func parseTraces(content string) traces {
	out, name := traces{}, ""
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(line, "\n")
		if rest, is := strings.CutPrefix(line, "  "); is {
			out[name] = append(out[name], rest)
		} else {
			name = line
		}
	}
	return out
}
