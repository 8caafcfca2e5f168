// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/local/childprocess"
	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/restclient"
)

type object = map[string]any

// program is the command under test, with its own state folder.
type program struct {
	t      *testing.T
	binary string
	dir    string
}

// newProgram compiles the command. The processes that the test starts end with the test.
func newProgram(t *testing.T) program {
	t.Helper()
	p := program{t: t, binary: filepath.Join(t.TempDir(), "local"), dir: filepath.Join(t.TempDir(), "state")}
	out, err := exec.Command("go", "build", "-o", p.binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(p.dir, "logs", "*", "[sk]*[sk].log*"))
			for _, log := range logs {
				content, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", log, content)
			}
		}
		out, err := p.command("clean").CombinedOutput()
		assert.NoError(t, err, string(out))
		assert.NoDirExists(t, p.dir)
	})
	return p
}

// command returns a command line. Its processes end soon after the test, even a killed one.
func (p program) command(args ...string) *exec.Cmd {
	if _, before := cleanedFolders.LoadOrStore(p.dir, true); !before {
		require.NoError(p.t, childprocess.RunAfterExit(p.binary, "clean", "--dir", p.dir))
	}
	return exec.Command(p.binary, append(args, "--dir", p.dir)...)
}

// cleanedFolders has the folders that are cleaned after this process.
var cleanedFolders sync.Map

// run returns standard output, standard error and the exit code.
func (p program) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	var out, messages bytes.Buffer
	command := p.command(args...)
	command.Stdout, command.Stderr = &out, &messages
	err := command.Run()
	if err != nil {
		require.IsType(p.t, &exec.ExitError{}, err)
	}
	return out.String(), messages.String(), command.ProcessState.ExitCode()
}

func (p program) up(args ...string) cluster.Status {
	p.t.Helper()
	out, messages, code := p.run(append([]string{"up", "--json"}, args...)...)
	require.Zero(p.t, code, messages)
	p.t.Log(strings.TrimSpace(messages))
	var status cluster.Status
	require.NoError(p.t, json.Unmarshal([]byte(out), &status))
	return status
}

func (p program) status() (status cluster.Status, code int) {
	p.t.Helper()
	out, messages, code := p.run("status", "-o", "json")
	require.NoError(p.t, json.Unmarshal([]byte(out), &status), messages)
	return status, code
}

// processIDs maps cluster/part to the process id.
func processIDs(status cluster.Status) map[string]int {
	all := map[string]int{}
	for _, part := range status.Shared {
		all["shared/"+part.Name] = part.PID
	}
	for _, c := range status.Clusters {
		for _, part := range c.Parts {
			all[c.Name+"/"+part.Name] = part.PID
		}
	}
	return all
}

// api is a cluster under test.
type api struct {
	t      *testing.T
	client *restclient.Client
}

func (p program) api(status cluster.Status, name string) api {
	p.t.Helper()
	for _, c := range status.Clusters {
		if c.Name == name {
			folder := filepath.Join(p.dir, "pki", name)
			client, err := restclient.New(c.Server, restclient.Files{
				CA: filepath.Join(folder, "ca.crt"), Cert: filepath.Join(folder, "admin.crt"), Key: filepath.Join(folder, "admin.key"),
			})
			require.NoError(p.t, err)
			return api{p.t, client}
		}
	}
	require.FailNow(p.t, "no such cluster", name)
	return api{}
}

// apply sends the object by server-side apply; its name is the end of the path.
func (a api) apply(path string, o object) {
	a.t.Helper()
	o["metadata"].(object)["name"] = path[strings.LastIndexByte(path, '/')+1:]
	require.NoError(a.t, a.client.Apply(context.Background(), path, o))
}

// patch merges a JSON text into the object.
func (a api) patch(path, merge string) {
	a.t.Helper()
	require.NoError(a.t, a.client.Do(context.Background(), "PATCH", path, "application/merge-patch+json", json.RawMessage(merge), nil))
}

func (a api) get(path string) object {
	a.t.Helper()
	var o object
	require.NoError(a.t, a.client.Get(context.Background(), path, &o))
	return o
}

// await polls the object until every path in want has its value, printed with %v.
func (a api) await(path string, want map[string]string) object {
	a.t.Helper()
	var last object
	require.Eventually(a.t, func() bool {
		last = nil
		if a.client.Get(context.Background(), path, &last) != nil {
			return false
		}
		for field, value := range want {
			if fmt.Sprint(valueAtPath(last, field)) != value {
				return false
			}
		}
		return true
	}, 60*time.Second, 50*time.Millisecond, "%s: want %v", path, want)
	return last
}

func (a api) awaitGone(path string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		return restclient.IsNotFound(a.client.Get(context.Background(), path, nil))
	}, 60*time.Second, 50*time.Millisecond, path)
}

// valueAtPath follows a path of fields separated by slashes; "conditions[Ready]" selects the list
// element of type Ready, a number in brackets is an index.
func valueAtPath(value any, path string) any {
	for _, field := range strings.Split(path, "/") {
		name, key, isList := strings.Cut(strings.TrimSuffix(field, "]"), "[")
		if o, ok := value.(object); ok {
			value = o[name]
		} else {
			return nil
		}
		if !isList {
			continue
		}
		list, _ := value.([]any)
		value = nil
		for i, element := range list {
			if o, ok := element.(object); fmt.Sprint(i) == key || ok && o["type"] == key {
				value = element
			}
		}
	}
	return value
}

// requireProcessEnded checks that the process has ended, though init may not have collected it yet.
func requireProcessEnded(t *testing.T, part string, pid int) {
	t.Helper()
	require.NotZero(t, pid, part)
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		require.Contains(t, string(stat), ") Z ", part)
		return
	}
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, part)
}
