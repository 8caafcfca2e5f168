// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// event is an audit event of kube-apiserver, with the fields that traces need.
type event struct {
	// Server is set by readLogs: the cluster of hack/local, or "server".
	Server         string `json:"-"`
	Verb           string
	UserAgent      string
	RequestURI     string
	ObjectRef      struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	ResponseStatus struct{ Code int }
	// RequestObject and ResponseObject are empty for Secrets.
	RequestObject                            any
	ResponseObject                           map[string]any
	RequestReceivedTimestamp, StageTimestamp time.Time
}

// agents are the user agents of Pergola, without the version.
var agents = []string{"pergola", "pergola-operator", "pergola-gardenlet"}

func (e *event) agent() string {
	program, _, _ := strings.Cut(e.UserAgent, " ")
	program, _, _ = strings.Cut(program, "/")
	return program
}

// isPergola reports whether Pergola sent the request. In the tests of one package (faults), engine
// and test have the same agent. There the test sends requests of field manager "somebody",
// deletions of collections, finalize, and patches without a field manager; its other deletions
// count as Pergola's.
func (e *event) isPergola() bool {
	if strings.HasSuffix(e.agent(), ".test") {
		manager := e.query("fieldManager")
		return manager != "somebody" && e.Verb != "deletecollection" && e.ObjectRef.Subresource != "finalize" && (manager != "" || e.Verb != "patch")
	}
	return slices.Contains(agents, e.agent())
}

func (e *event) query(key string) string {
	u, err := url.Parse(e.RequestURI)
	if err != nil {
		return ""
	}
	return u.Query().Get(key)
}

func (e *event) isSuccess() bool { return e.ResponseStatus.Code/100 == 2 }

// canChangeData reports whether the request can have changed the data of the server.
func (e *event) canChangeData() bool { return e.isSuccess() && e.query("dryRun") == "" }

// hasObjectAnswer reports whether the answer is the object itself: subresources such as token have
// their own kinds.
func (e *event) hasObjectAnswer() bool {
	return stringAt(e.ResponseObject, "metadata", "resourceVersion") != "" && slices.Contains([]string{"", "status", "finalize"}, e.ObjectRef.Subresource) &&
		e.Verb != "deletecollection"
}

// answerRevision is the resourceVersion of the answer, which is the revision of etcd; it is 0
// without one.
func (e *event) answerRevision() int64 {
	if !e.hasObjectAnswer() {
		return 0
	}
	n, _ := strconv.ParseInt(stringAt(e.ResponseObject, "metadata", "resourceVersion"), 10, 64)
	return n
}

// stringAt is the string at a path of an object, or empty.
func stringAt(o map[string]any, path ...string) string {
	for _, p := range path[:len(path)-1] {
		o, _ = o[p].(map[string]any)
	}
	s, _ := o[path[len(path)-1]].(string)
	return s
}

// objectID identifies an object by its real name.
type objectID struct{ server, resource, namespace, name string }

func (e *event) objectKey() objectID {
	r := e.ObjectRef
	o := objectID{e.Server, r.Resource, r.Namespace, r.Name}
	if r.APIGroup != "" {
		o.resource += "." + r.APIGroup
	}
	if r.Resource == "namespaces" {
		o.namespace = "" // the audit repeats the name here
	}
	if o.name == "" {
		o.name = "*" // a collection, or a name that the server generates
	}
	return o
}

func (o objectID) String() string {
	name := o.name
	if o.namespace != "" {
		name = o.namespace + "/" + name
	}
	return normaliseName(o.server + " " + o.resource + " " + name)
}

// randomParts are the parts of names and keys that differ between runs: UIDs, times in names of
// Events, and digests. The namespaces of tests (f, process, number) do so, too, because subtests
// run in any order.
var randomParts = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\.[0-9a-f]{16}\b`), ".TIME"},
	{regexp.MustCompile(`-[0-9a-f]{8}\b`), "-HASH"},
	{regexp.MustCompile(`\bf[0-9]+-[0-9]+\b`), "TEST"},
}

func normaliseName(name string) string {
	for _, r := range randomParts {
		name = r.pattern.ReplaceAllString(name, r.with)
	}
	return name
}

// readLogs reads the audit logs of a folder, sorted by the time of the answer.
func readLogs(dir string) (all []*event, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has no audit logs: record some first", dir))
	}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		events, err := readEvents(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, e := range events {
			e.Server, _, _ = strings.Cut(filepath.Base(path), ".")
		}
		all = append(all, events...)
	}
	slices.SortStableFunc(all, func(a, b *event) int { return a.StageTimestamp.Compare(b.StageTimestamp) })
	return all, nil
}

func readEvents(from io.Reader) (out []*event, err error) {
	lines := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // a killed server can leave an incomplete last line
		}
		e := &event{}
		if err == nil {
			err = json.Unmarshal(line, e)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, e)
	}
}
