// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// auditLine returns a line of an audit log. request is VERB RESOURCE NAMESPACE/NAME QUERY; its
// answer comes half a second after it, and second seconds after the start.
func auditLine(second int, agent, request, code, object string) string {
	words := strings.Fields(request + " -")
	resource, subresource, _ := strings.Cut(words[1], "/")
	resource, group, _ := strings.Cut(resource, ".")
	namespace, name, _ := strings.Cut(words[2], "/")
	at := func(half int) string {
		return fmt.Sprintf("2026-11-30T00:%02d:%02d.%d00000Z", second/60, second%60, half)
	}
	if object == "" {
		object = "null"
	}
	return fmt.Sprintf(`{"verb":%q,"userAgent":%q,"requestURI":"/x?%s","objectRef":{"resource":%q,"subresource":%q,"apiGroup":%q,"namespace":%q,"name":%q},`+
		`"responseStatus":{"code":%s},"responseObject":%s,"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n",
		words[0], agent, strings.Trim(words[3], "-"), resource, subresource, group, namespace, name, code, object, at(0), at(5))
}

// configMap returns the JSON of a ConfigMap; data is the content of its field data.
func configMap(version int, data string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"u%d","resourceVersion":"%d"},"data":{%s}}`, version, version, data)
}

// summarizeLogs returns the output of summarize for logs by file name, which begins with the
// server's name.
func summarizeLogs(t *testing.T, logs map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range logs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".log"), []byte(text), 0o600))
	}
	var out bytes.Buffer
	differ, err := run([]string{"summarize", dir}, &out)
	require.NoError(t, err)
	assert.False(t, differ)
	return out.String()
}

func TestSummarize(t *testing.T) {
	const garden, apply = "pergola", "patch configmaps garden/a fieldManager=pergola"
	for name, test := range map[string]struct {
		log  []string
		want string
	}{
		"created, changed, deleted": {
			[]string{
				auditLine(1, garden, apply, "201", configMap(1, `"x":"1"`)), auditLine(2, garden, apply, "200", configMap(2, `"y":"1"`)),
				auditLine(3, garden, apply, "200", configMap(2, `"y":"1"`)), auditLine(4, garden, apply, "422", ""),
				auditLine(5, garden, "delete configmaps garden/a", "200", `{"kind":"Status"}`), auditLine(6, garden, apply, "201", configMap(3, `"z":"1"`)),
			},
			"order: created, and no inventory lists it\n  runtime configmaps garden/a\n" +
				"runtime configmaps garden/a\n  patch fieldManager=pergola created +.data.x\n  patch fieldManager=pergola -.data.x +.data.y\n" +
				"  patch fieldManager=pergola nothing\n  patch fieldManager=pergola failed: 422\n  delete\n  patch fieldManager=pergola created +.data.z\n",
		},
		"others count for what was before": {
			[]string{
				auditLine(1, "somebody", apply, "201", configMap(1, `"x":"1","y":"1"`)), auditLine(2, "pergola-operator", apply+"&force=true", "200", configMap(2, `"x":"2","y":"1"`)),
				auditLine(3, "pergola-demo", apply, "200", configMap(3, `"x":"2"`)),
			},
			"runtime configmaps garden/a\n  patch agent=pergola-operator fieldManager=pergola force=true ~.data.x\n",
		},
		"the log has two requests the other way round": {
			[]string{
				auditLine(1, garden, apply, "201", configMap(1, `"x":"1"`)), auditLine(2, garden, apply, "200", configMap(3, `"x":"2"`)),
				auditLine(3, "somebody", apply, "200", configMap(2, `"x":"1","y":"1"`)),
			},
			"order: created, and no inventory lists it\n  runtime configmaps garden/a\n" +
				"runtime configmaps garden/a\n  patch fieldManager=pergola created +.data.x\n  patch fieldManager=pergola ~.data.x -.data.y\n",
		},
		"times and repeats": {
			[]string{
				auditLine(1, "somebody", apply, "201", configMap(1, `"t":"2026-11-30T00:00:00Z"`)), auditLine(2, garden, apply, "200", configMap(2, `"t":"2026-11-30T00:00:01.5Z"`)),
				auditLine(3, garden, apply, "200", configMap(3, `"t":"2026-11-30T00:00:02Z"`)), auditLine(4, garden, apply+"&dryRun=All", "200", configMap(4, `"t":"no time"`)),
			},
			"runtime configmaps garden/a\n  patch fieldManager=pergola dryRun=All\n",
		},
		"random names, no content of Secrets": {
			[]string{
				auditLine(1, garden, "patch secrets garden/ca-0123abcd", "201", ""), auditLine(2, garden, "patch secrets garden/ca-99999999", "201", ""),
				auditLine(3, garden, "patch secrets garden/ca-99999999", "200", ""),
			},
			"order: created, and no inventory lists it\n  runtime secrets garden/ca-HASH\n" +
				"runtime secrets garden/ca-HASH (1 of 2)\n  patch created, not recorded\nruntime secrets garden/ca-HASH (2 of 2)\n  patch created, not recorded\n  patch not recorded\n",
		},
		"in a test the engine is who is not somebody": {
			[]string{
				auditLine(1, "faults.test/v0 (x)", "create configmaps f77-3/a fieldManager=somebody", "201", configMap(1, "")),
				auditLine(2, "faults.test/v0 (x)", "patch configmaps f77-3/a fieldManager=seed", "200", configMap(2, `"a":"b"`)),
				auditLine(3, "faults.test/v0 (x)", "patch configmaps f77-3/a", "200", configMap(3, `"a":"c"`)),
				auditLine(4, "faults.test/v0 (x)", "deletecollection configmaps f77-3/", "200", ""),
			},
			"runtime configmaps TEST/a\n  patch fieldManager=seed -.data +.data.a\n",
		},
		"an answer with the metadata only": {
			[]string{
				auditLine(1, "somebody", apply, "201", configMap(1, `"a":"b"`)),
				auditLine(2, garden, apply, "200", `{"kind":"PartialObjectMetadata","metadata":{"resourceVersion":"2","labels":{"l":"m"}}}`),
				auditLine(3, garden, apply, "200", `{"kind":"PartialObjectMetadata","metadata":{"resourceVersion":"3"}}`), auditLine(4, garden, apply, "200", configMap(4, `"a":"c"`)),
			},
			"runtime configmaps garden/a\n  patch fieldManager=pergola +.metadata.labels.l\n  patch fieldManager=pergola -.metadata.labels.l\n  patch fieldManager=pergola ~.data.a\n",
		},
		"a status": {
			[]string{
				auditLine(1, "somebody", apply, "201", configMap(1, "")),
				auditLine(2, garden, "patch configmaps/status garden/a", "200", strings.Replace(configMap(2, ""), `"data"`, `"status":{"conditions":[{"type":"A","x":1}],"y":1},"data"`, 1)),
				auditLine(3, garden, "patch configmaps/status garden/a", "409", ""),
				auditLine(4, garden, "patch configmaps/status garden/a", "200", strings.Replace(configMap(4, ""), `"data"`, `"status":{"conditions":[{"type":"A","x":2}],"y":1},"data"`, 1)),
				auditLine(5, garden, "patch configmaps/status garden/a", "200", strings.Replace(configMap(4, ""), `"data"`, `"status":{"conditions":[{"type":"A","x":2}],"y":1},"data"`, 1)),
				auditLine(6, garden, "patch configmaps garden/a", "200", strings.Replace(configMap(6, `"a":"b"`), `"data"`, `"status":{"conditions":[{"type":"A","x":2}],"y":1},"data"`, 1)),
			},
			"runtime configmaps garden/a\n  patch/status +.status.y\n  patch/status nothing\n  patch -.data +.data.a\n" +
				"  meanwhile .status.conditions[A].type .status.conditions[A].x (2 times)\n",
		},
		"an object that stays until its finalizers are gone": {
			[]string{
				auditLine(1, "somebody", apply, "201", configMap(1, `"a":"b"`)),
				auditLine(2, garden, "delete configmaps garden/a", "200", strings.Replace(configMap(2, `"a":"b"`), `"uid"`, `"deletionTimestamp":"2026-11-30T00:00:00Z","uid"`, 1)),
			},
			"runtime configmaps garden/a\n  delete +.metadata.deletionTimestamp\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := summarizeLogs(t, map[string]string{"runtime.1": strings.Join(test.log, "")})
			assert.Equal(t, test.want, got)
			var again bytes.Buffer
			parseTraces(got).print(&again)
			assert.Equal(t, got, again.String())
		})
	}
}

func TestLogsOfSeveralServers(t *testing.T) {
	log := auditLine(1, "pergola", "delete configmaps a/b", "200", "")
	got := summarizeLogs(t, map[string]string{"runtime.1": log + `{"verb":"pat`, "virtual.1": log, "virtual.2": ""})
	assert.Equal(t, "runtime configmaps a/b\n  delete\nvirtual configmaps a/b\n  delete\n", got)
	_, err := run([]string{"summarize", t.TempDir()}, &bytes.Buffer{})
	assert.ErrorContains(t, err, "no audit logs")
	_, err = readEvents(strings.NewReader("{}\nx\n"))
	assert.ErrorContains(t, err, "line 2")
}

func TestOrderViolations(t *testing.T) {
	const gone = `"deletionTimestamp":"2026-11-30T00:00:00Z","finalizers":["f"],`
	inventory := func(second int, entries string) string {
		return auditLine(second, "pergola", "patch configmaps garden/pergola-inventory.a", "200", configMap(second, `"entries.json":`+fmt.Sprintf("%q", entries)))
	}
	managed := func(second int, resources string) string {
		return auditLine(second, "pergola", "patch managedresources.resources.gardener.cloud/status garden/m", "200", `{"kind":"ManagedResource","metadata":{"resourceVersion":"9"},"status":{"resources":[`+resources+`]}}`)
	}
	create := func(second int, name string) string {
		return auditLine(second, "pergola", "patch secrets garden/"+name, "201", "")
	}
	remove := func(second int, name string) string {
		return auditLine(second, "pergola", "delete secrets garden/"+name, "200", "")
	}
	owner := func(second int, request, meta, state string) string {
		return auditLine(second, "pergola", request+".operator.gardener.cloud/status /g", "200", `{"kind":"Garden","metadata":{`+meta+`"resourceVersion":"9"},"status":{"lastOperation":{"state":"`+state+`"}}}`)
	}
	const listed = `{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"a"}`
	for name, test := range map[string]struct {
		log  []string
		want map[string][]string
	}{
		"listed by a ConfigMap":       {[]string{inventory(1, listed), create(2, "a")}, nil},
		"listed by a ManagedResource": {[]string{managed(1, listed), create(2, "a")}, nil},
		"listed while it is created": {
			[]string{create(2, "a"), strings.ReplaceAll(inventory(2, listed), ".000000Z", ".300000Z")},
			map[string][]string{"order: created before an inventory lists it": {"runtime secrets garden/a"}},
		},
		"listed too late":  {[]string{create(1, "a"), managed(2, listed)}, map[string][]string{"order: created before an inventory lists it": {"runtime secrets garden/a"}}},
		"listed no longer": {[]string{inventory(1, listed), inventory(2, ""), create(3, "a")}, map[string][]string{"order: created, and no inventory lists it": {"runtime secrets garden/a"}}},
		"deleted while a Garden is processed": {
			[]string{owner(1, "patch gardens", "", "Processing"), remove(2, "a"), owner(3, "patch gardens", "", "Succeeded"), remove(4, "b")},
			map[string][]string{"order: deleted while no owner and no Landscape is Processing": {"runtime secrets garden/b"}},
		},
		"status before the first deletion": {
			[]string{owner(1, "patch gardens", "", "Processing"), owner(2, "delete gardens", gone, "Processing"), owner(3, "patch gardens", gone, "Processing"), remove(4, "a")},
			map[string][]string{"order: the status shows the deletion of the owner before a deletion": {"runtime gardens.operator.gardener.cloud g"}},
		},
		"a deletion before the status": {
			[]string{owner(1, "patch gardens", "", "Processing"), owner(2, "delete gardens", gone, "Processing"), remove(3, "a"), owner(4, "patch gardens", gone, "Processing")},
			map[string][]string{"order: a deletion before the status shows the deletion of the owner": {"runtime gardens.operator.gardener.cloud g"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{}
			for name, lines := range parseTraces(summarizeLogs(t, map[string]string{"runtime.1": strings.Join(test.log, "")})) {
				if strings.HasPrefix(name, "order: ") {
					got[name] = lines
				}
			}
			if test.want == nil {
				test.want = map[string][]string{}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestChangedPaths(t *testing.T) {
	m := func(more map[string]any) map[string]any { return more }
	named := func(name string, value any) any { return map[string]any{"name": name, "value": value} }
	for name, test := range map[string]struct {
		before, after map[string]any
		want          []string
	}{
		"what every write changes": {m(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}), m(map[string]any{"metadata": map[string]any{"resourceVersion": "2", "uid": "x"}}), nil},
		"keys with dots":           {nil, m(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a.b/c d": "x"}}}), []string{"+.metadata.annotations[a.b/c_d]"}},
		"a digest in a key": {
			m(map[string]any{"a": map[string]any{"ref-01234567": "x", "ref-11111111": "y"}}), m(map[string]any{"a": map[string]any{"ref-01234567": "x", "ref-11111111": "z"}}),
			[]string{"~.a.ref-HASH"},
		},
		"empty objects": {m(map[string]any{"a": map[string]any{}}), m(map[string]any{"a": map[string]any{"b": "c"}}), []string{"-.a", "+.a.b"}},
		"elements by name, in another order": {
			m(map[string]any{"l": []any{named("a", "1"), named("b", "1")}}), m(map[string]any{"l": []any{named("b", "2"), named("a", "1")}}), []string{"~.l[b].value"},
		},
		"elements of one name": {m(map[string]any{"l": []any{named("a", "1"), named("a", "1")}}), m(map[string]any{"l": []any{named("a", "1"), named("a", "2")}}), []string{"~.l[a#2].value"}},
		"entries of an inventory": {
			m(map[string]any{"data": map[string]any{"entries.json": "{\"kind\":\"A\",\"name\":\"a\"}\n"}}), m(map[string]any{"data": map[string]any{"entries.json": "{\"kind\":\"A\",\"name\":\"a\",\"live\":\"x\"}\n{\"kind\":\"B\"}"}}),
			[]string{"+.data[entries.json][A/a].live", "+.data[entries.json][B].kind"},
		},
		"a list of values":      {m(map[string]any{"l": []any{"a"}}), m(map[string]any{"l": []any{"a", "b"}}), []string{"~.l"}},
		"another type":          {m(map[string]any{"v": "1"}), m(map[string]any{"v": float64(1)}), []string{"~.v"}},
		"a time that was none":  {m(map[string]any{"v": "never"}), m(map[string]any{"v": "2026-11-30T00:00:00Z"}), []string{"~.v"}},
		"a time instead of one": {m(map[string]any{"v": "2026-11-30T00:00:01.000001Z"}), m(map[string]any{"v": "2026-11-30T00:00:00Z"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, changedPaths(flattenObject(test.before), flattenObject(test.after)))
		})
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	old, new := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	const base = "a\n  patch created +.x\n  patch nothing (2 times)\n  delete\n"
	for name, test := range map[string]struct{ new, want string }{
		"the same":          {base, ""},
		"other repeats":     {strings.Replace(base, "2 times", "7 times", 1), ""},
		"one repeat":        {strings.Replace(base, " (2 times)", "", 1), ""},
		"a missing write":   {strings.Replace(base, "  patch nothing (2 times)\n", "", 1), "a\n  - patch nothing\n"},
		"an additional one": {base + "  delete\n", "a\n  + delete\n"},
		"another path":      {strings.Replace(base, "+.x", "+.y", 1), "a\n  - patch … +.x\n  + patch … +.y\n"},
		"another verb":      {strings.Replace(base, "  delete", "  update nothing", 1), "a\n  - delete\n  + update nothing\n"},
		"another order":     {"a\n  patch nothing\n  patch created +.x\n  delete\n", "a\n  - patch created +.x\n  + patch created +.x\n"},
		"an object less":    {"", "a: only in the old one\n  - patch created +.x\n  - patch nothing\n  - delete\n"},
		"an object more":    {base + "b\n  delete\n", "b: only in the new one\n  + delete\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(old, []byte(base), 0o600))
			require.NoError(t, os.WriteFile(new, []byte(test.new), 0o600))
			var out bytes.Buffer
			differ, err := run([]string{"compare", old, new}, &out)
			require.NoError(t, err)
			number := min(len(test.want), 1)
			assert.Equal(t, test.want != "", differ)
			assert.Equal(t, test.want+fmt.Sprintf("%d differ (how often a line repeats is not compared)\n", number), out.String())
			differ, err = run([]string{"compare", old, new, new}, &out)
			require.NoError(t, err)
			assert.False(t, differ, "it is in one of those before")
		})
	}
}

// TestRecord records programs that log their arguments, instead of kube-apiserver, node and etcd.
func TestRecord(t *testing.T) {
	real, dir := t.TempDir(), filepath.Join(t.TempDir(), "new", "one")
	for _, name := range []string{"kube-apiserver", "node", "etcd"} {
		require.NoError(t, os.WriteFile(filepath.Join(real, name), []byte("#!/bin/sh\necho "+name+" \"$@\" >> '"+real+"/said'\n"), 0o700))
	}
	t.Setenv("KUBEBUILDER_ASSETS", real)
	const script = `cd "$KUBEBUILDER_ASSETS" && ./kube-apiserver --etcd-prefix=/local --secure-port=7 && ./kube-apiserver --secure-port=8 --etcd-prefix= && ./etcd x &&
./node "a=b,kube-apiserver=$KUBEBUILDER_ASSETS/kube-apiserver" "two words"`
	_, err := run([]string{"record", dir, "sh", "-c", script}, &bytes.Buffer{})
	require.NoError(t, err)
	said, err := os.ReadFile(filepath.Join(real, "said"))
	require.NoError(t, err)
	flags := " --audit-policy-file=" + dir + "/policy.yaml --audit-log-path=" + dir + "/"
	assert.Equal(t, "kube-apiserver --etcd-prefix=/local --secure-port=7"+flags+"local.7.log --audit-log-maxsize=100000\n"+
		"kube-apiserver --secure-port=8 --etcd-prefix="+flags+"server.8.log --audit-log-maxsize=100000\n"+
		"etcd x\nnode a=b,kube-apiserver="+real+"/kube-apiserver two words\n", string(said))
	assert.ErrorContains(t, record(dir, []string{"true"}), "each recording has a folder of its own")
	assert.Error(t, record(filepath.Join(dir, "2"), []string{"false"}))
	t.Setenv("KUBEBUILDER_ASSETS", "")
	assert.ErrorContains(t, record(filepath.Join(dir, "3"), []string{"true"}), "set KUBEBUILDER_ASSETS")
	_, err = run(nil, &bytes.Buffer{})
	assert.ErrorContains(t, err, "usage:\n  traces record")
}
