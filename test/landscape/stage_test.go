// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/commands/status"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/childprocess"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// testStage is the landscape of the tests, and the means to change it.
type testStage struct {
	*testing.T
	dir string // the folder of the landscape
	api map[string]dynamic.Interface
	// machineSpeed is the speed of the machine, measured by earlier tests.
	machineSpeed *speed
}

// speed is the time to create everything, and to find no changes.
type speed struct {
	createTime, noChangeTime time.Duration
}

// minReadyPatch removes the minReadySeconds of simulated API servers, in every test.
const minReadyPatch = `
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/minReadySeconds, value: 0}
`

func newStage(t *testing.T) *testStage {
	s := &testStage{T: t, dir: filepath.Join(t.TempDir(), "landscape"), api: map[string]dynamic.Interface{}, machineSpeed: &speed{}}
	require.NoError(t, os.CopyFS(s.dir, os.DirFS(filepath.Join(env.Root, "landscapes/local"))))
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "golden")))
	s.write("components/garden/kube-apiserver/kustomization.yaml", minReadyPatch)
	s.write("components/shoot/kube-apiserver/kustomization.yaml", minReadyPatch)
	s.replaceText("landscape.yaml", "duration: 1m", "duration: 4s")
	// Pods are simulated here: another API server replaces that of the Garden.
	s.replaceText("landscape.yaml", "      context: pergola-runtime\n", "      context: pergola-runtime\n    virtual:\n      context: pergola-virtual\n")
	// A gate that holds a large component of the demonstration but not a small one.
	s.replaceText("landscape.yaml", "maxDeletions: 50", "maxDeletions: 20")
	for name, config := range env.configs {
		somebody := rest.CopyConfig(config)
		somebody.UserAgent = "somebody"
		client, err := dynamic.NewForConfig(somebody)
		require.NoError(t, err)
		s.api[name] = client
	}
	return s
}

// withTest returns the stage for one test.
func (s *testStage) withTest(t *testing.T) *testStage {
	out := *s
	out.T = t
	return &out
}

func (s *testStage) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *testStage) read(name string) string {
	s.Helper()
	text, err := os.ReadFile(s.path(name))
	require.NoError(s, err)
	return string(text)
}

func (s *testStage) write(name, text string) {
	s.Helper()
	require.NoError(s, os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	require.NoError(s, os.WriteFile(s.path(name), []byte(text), 0o600))
}

// replaceText replaces all occurrences of a text in a file.
func (s *testStage) replaceText(name, old, new string) {
	s.Helper()
	text := s.read(name)
	require.Contains(s, text, old, name)
	s.write(name, strings.ReplaceAll(text, old, new))
}

// editWithUndo edits a file and returns the undo function.
func (s *testStage) editWithUndo(name, old, new string) (undo func()) {
	s.Helper()
	before := s.read(name)
	s.replaceText(name, old, new)
	return func() { s.write(name, before) }
}

// eventTTL sets a field of the Garden and one of the Shoot.
func (s *testStage) eventTTL(garden, shoot string) {
	s.Helper()
	field := regexp.MustCompile(`eventTTL: \w+`)
	for name, value := range map[string]string{"garden/garden.yaml": garden, "projects/local/shoot.yaml": shoot} {
		text := s.read(name)
		require.Regexp(s, field, text, name)
		s.write(name, field.ReplaceAllString(text, "eventTTL: "+value))
	}
}

// addFileWithUndo writes a new file and returns the undo function.
func (s *testStage) addFileWithUndo(name, text string) (undo func()) {
	s.Helper()
	_, err := os.Stat(s.path(name))
	require.ErrorIs(s, err, os.ErrNotExist, "%s is there already", name)
	s.write(name, text)
	return func() {
		require.NoError(s, os.Remove(s.path(name)))
		_ = os.Remove(filepath.Dir(s.path(name))) // an empty overlay folder is an error
	}
}

// load reads the current landscape, which has to be valid.
func (s *testStage) load() *landscapes.Landscape {
	s.Helper()
	key, err := os.ReadFile(env.ageKeyFile)
	require.NoError(s, err)
	ids, err := landscapes.ParseAgeIdentities(string(key))
	require.NoError(s, err)
	l, violations, err := landscapes.Load(context.Background(), s.dir, landscapes.Options{AgeIdentities: ids})
	require.NoError(s, err)
	found, err := l.Validate(context.Background(), schemas.Options{})
	require.NoError(s, err)
	require.False(s, schemas.HasErrors(append(violations, found...)), "%v", append(violations, found...))
	return l
}

// converger is one process: its connections, and its reports.
type converger struct {
	*landscape.Converger
	stage *testStage

	mu      sync.Mutex
	objects []objectEvent
	drift   []landscape.Drift
}

// objectEvent is one processed object, in order.
type objectEvent struct {
	bundle string
	apply.ObjectResult
}

type convergerOption func(*landscape.Options)

func withConfig(name string, config *rest.Config) convergerOption {
	return func(o *landscape.Options) {
		o.Connections.Configs = maps.Clone(o.Connections.Configs)
		o.Connections.Configs[name] = config
	}
}

func withStepTimeout(timeout time.Duration) convergerOption {
	return func(o *landscape.Options) { o.Timing.StepTimeout = timeout }
}

func withApproval(id string) convergerOption {
	return func(o *landscape.Options) { o.Permits.Gate.Approved = map[string]bool{id: true} }
}

// newConverger starts a converger, which ends no later than the test.
func (s *testStage) newConverger(options ...convergerOption) *converger {
	s.Helper()
	l := s.load()
	gate, err := landscape.DeletionGate(l, nil)
	require.NoError(s, err)
	c := &converger{stage: s}
	o := landscape.Options{
		Catalogue:   components.FS,
		Connections: landscape.Connections{Configs: env.configs},
		Clock:       clock.RealClock{},
		Process:     landscape.ProcessIdentity{Holder: "itest " + s.Name(), Version: components.Version},
		Timing:      landscape.Timing{Thresholds: landscape.ConditionThresholds(l), CareInterval: 500 * time.Millisecond}, Permits: landscape.Permits{Gate: gate},
		Listeners: landscape.Listeners{OnObject: func(_, bundle string, r apply.ObjectResult) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.objects = append(c.objects, objectEvent{bundle, r})
		}, OnDrift: func(d landscape.Drift) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.drift = append(c.drift, d)
		}},
	}
	for _, change := range options {
		change(&o)
	}
	c.Converger, err = landscape.New(l, o)
	require.NoError(s, err)
	s.Cleanup(c.Close)
	return c
}

// writtenObjects returns the objects that an apply changed, as texts with the action but without
// the cluster.
func (c *converger) writtenObjects() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, e := range c.objects {
		switch e.Action {
		case apply.Created, apply.Configured, apply.Adopted, apply.Recreated, apply.Deleted:
			out = append(out, string(e.Action)+" "+e.Ref.String())
		}
	}
	return out
}

// missingObjects returns the objects that were to be deleted but did not exist.
func (c *converger) missingObjects() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, e := range c.objects {
		if e.Action == apply.AlreadyDeleted {
			out = append(out, e.Ref.String())
		}
	}
	return out
}

func (c *converger) isRepaired(ref string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.drift {
		if d.Object.String() == ref && d.Repaired {
			return true
		}
	}
	return false
}

// mustApply applies the landscape with a new process.
func (s *testStage) mustApply(options ...convergerOption) (*landscape.RunReport, *converger) {
	s.Helper()
	c := s.newConverger(options...)
	defer c.Close()
	report, err := c.Apply(testContext(s.T))
	require.NoError(s, err, strings.Join(apply.Problems(err), "\n"))
	// Missed heartbeats of nodes on a busy machine make healthy pods unready for a moment.
	ctx := testContext(s.T)
	var text bytes.Buffer
	for state := c.Status(ctx, landscape.StatusOptions{}); !state.Ready; state = c.Status(ctx, landscape.StatusOptions{Live: true}) {
		if ctx.Err() == nil { // otherwise it reports the timeout instead of the reason
			text.Reset()
			status.Print(&text, state, false)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			require.Fail(s, "not ready", text.String())
		}
	}
	return report, c
}

// applyExpectingError applies a landscape that cannot converge and returns the problems, one per
// line.
func (s *testStage) applyExpectingError(options ...convergerOption) (problems []string, report *landscape.RunReport, c *converger) {
	s.Helper()
	c = s.newConverger(options...)
	report, err := c.Apply(testContext(s.T))
	require.Error(s, err)
	problems = apply.Problems(err)
	s.Logf("problems:\n  %s", strings.Join(problems, "\n  "))
	return problems, report, c
}

// requireProblem finds one line that has all parts.
func requireProblem(t *testing.T, problems []string, parts ...string) {
	t.Helper()
	for _, p := range problems {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(p, part)
		}
		if all {
			return
		}
	}
	require.Failf(t, "no such problem", "want one with %q in\n%s", parts, strings.Join(problems, "\n"))
}

// command runs the built program.
type command struct {
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
}

func (s *testStage) cli(args ...string) *command {
	c := &command{cmd: exec.Command(env.Pergola, args...)}
	c.cmd.Env = append(os.Environ(), "KUBECONFIG="+env.kubeconfig, "SOPS_AGE_KEY_FILE="+env.ageKeyFile)
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	return c
}

// run returns the exit code.
func (c *command) run(t *testing.T) int {
	t.Helper()
	require.NoError(t, childprocess.Start(c.cmd))
	return c.wait(t)
}

func (c *command) wait(t *testing.T) int {
	t.Helper()
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	t.Logf("$ pergola %s → %d\n%s%s", strings.Join(c.cmd.Args[1:], " "), c.cmd.ProcessState.ExitCode(), c.stdout.String(), c.stderr.String())
	return c.cmd.ProcessState.ExitCode()
}

// lockedBuffer may be read while a process writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
