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
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/hack/mortal"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// stage is the landscape of the tests, and the means to change it.
type stage struct {
	*testing.T
	dir string // the folder of the landscape
	api map[string]dynamic.Interface
	// pace is the speed of the machine, measured by earlier tests.
	pace *pace
}

// pace is the time to create everything, and to find no changes.
type pace struct {
	fresh, unchanged time.Duration
}

// noWait removes the minReadySeconds of simulated API servers, in every test.
const noWait = `
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/minReadySeconds, value: 0}
`

func newStage(t *testing.T) *stage {
	s := &stage{T: t, dir: filepath.Join(t.TempDir(), "landscape"), api: map[string]dynamic.Interface{}, pace: &pace{}}
	require.NoError(t, os.CopyFS(s.dir, os.DirFS(filepath.Join(env.Root, "landscapes/local"))))
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "golden")))
	s.write("components/garden/kube-apiserver/kustomization.yaml", noWait)
	s.write("components/shoot/kube-apiserver/kustomization.yaml", noWait)
	s.edit("landscape.yaml", "duration: 1m", "duration: 4s")
	// Pods are simulated here: another API server replaces that of the Garden.
	s.edit("landscape.yaml", "      context: pergola-runtime\n", "      context: pergola-runtime\n    virtual:\n      context: pergola-virtual\n")
	// A gate that holds a large component of the demonstration but not a small one.
	s.edit("landscape.yaml", "maxDeletions: 50", "maxDeletions: 20")
	for name, config := range env.configs {
		somebody := rest.CopyConfig(config)
		somebody.UserAgent = "somebody"
		client, err := dynamic.NewForConfig(somebody)
		require.NoError(t, err)
		s.api[name] = client
	}
	return s
}

// on returns the stage for one test.
func (s *stage) on(t *testing.T) *stage {
	out := *s
	out.T = t
	return &out
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *stage) read(name string) string {
	s.Helper()
	text, err := os.ReadFile(s.path(name))
	require.NoError(s, err)
	return string(text)
}

func (s *stage) write(name, text string) {
	s.Helper()
	require.NoError(s, os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	require.NoError(s, os.WriteFile(s.path(name), []byte(text), 0o600))
}

// edit replaces all occurrences of a text in a file.
func (s *stage) edit(name, old, new string) {
	s.Helper()
	text := s.read(name)
	require.Contains(s, text, old, name)
	s.write(name, strings.ReplaceAll(text, old, new))
}

// change edits a file and returns the undo function.
func (s *stage) change(name, old, new string) (undo func()) {
	s.Helper()
	before := s.read(name)
	s.edit(name, old, new)
	return func() { s.write(name, before) }
}

// eventTTL sets a field of the Garden and one of the Shoot.
func (s *stage) eventTTL(garden, shoot string) {
	s.Helper()
	field := regexp.MustCompile(`eventTTL: \w+`)
	for name, value := range map[string]string{"garden/garden.yaml": garden, "projects/local/shoot.yaml": shoot} {
		text := s.read(name)
		require.Regexp(s, field, text, name)
		s.write(name, field.ReplaceAllString(text, "eventTTL: "+value))
	}
}

// add writes a new file and returns the undo function.
func (s *stage) add(name, text string) (undo func()) {
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
func (s *stage) load() *landscapes.Landscape {
	s.Helper()
	key, err := os.ReadFile(env.age)
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
	stage *stage

	mu      sync.Mutex
	objects []event
	drift   []landscape.Drift
}

// event is one processed object, in order.
type event struct {
	bundle string
	apply.ObjectResult
}

type option func(*landscape.Options)

func withConfig(name string, config *rest.Config) option {
	return func(o *landscape.Options) {
		o.Connections.Configs = maps.Clone(o.Connections.Configs)
		o.Connections.Configs[name] = config
	}
}

func withSteps(timeout time.Duration) option {
	return func(o *landscape.Options) { o.Timing.StepTimeout = timeout }
}

func withApproval(id string) option {
	return func(o *landscape.Options) { o.Permits.Gate.Approved = map[string]bool{id: true} }
}

// process starts a converger, which ends no later than the test.
func (s *stage) process(options ...option) *converger {
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
			c.objects = append(c.objects, event{bundle, r})
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

// written returns the objects that an apply changed, as texts with the action but without the
// cluster.
func (c *converger) written() []string {
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

// gone returns the objects that were to be deleted but did not exist.
func (c *converger) gone() []string {
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

func (c *converger) repaired(ref string) bool {
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
func (s *stage) mustApply(options ...option) (*landscape.RunReport, *converger) {
	s.Helper()
	c := s.process(options...)
	defer c.Close()
	report, err := c.Apply(testContext(s.T))
	require.NoError(s, err, strings.Join(owner.Problems(err), "\n"))
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

// failing applies a landscape that cannot converge and returns the problems, one per line.
func (s *stage) failing(options ...option) (problems []string, report *landscape.RunReport, c *converger) {
	s.Helper()
	c = s.process(options...)
	report, err := c.Apply(testContext(s.T))
	require.Error(s, err)
	problems = owner.Problems(err)
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

// cli runs the built program.
type cli struct {
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
}

func (s *stage) cli(args ...string) *cli {
	c := &cli{cmd: exec.Command(env.Pergola, args...)}
	c.cmd.Env = append(os.Environ(), "KUBECONFIG="+env.kubeconfig, "SOPS_AGE_KEY_FILE="+env.age)
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	return c
}

// run returns the exit code.
func (c *cli) run(t *testing.T) int {
	t.Helper()
	require.NoError(t, mortal.Start(c.cmd))
	return c.wait(t)
}

func (c *cli) wait(t *testing.T) int {
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
