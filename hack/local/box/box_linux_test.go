// SPDX-License-Identifier: Apache-2.0

package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		name string
		init bool
		args []string
		want Exit
	}{
		{"zero", false, []string{"exit", "0"}, Exit{}},
		{"code", false, []string{"exit", "42"}, Exit{Code: 42}},
		{"zero under init", true, []string{"exit", "0"}, Exit{}},
		{"code under init", true, []string{"exit", "42"}, Exit{Code: 42}},
		{"signal under init", true, []string{"raise", "9"}, Exit{Code: 137}},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, _ := testProgramSpec(t, test.args...)
			spec.Init = test.init
			_, exit := runOutput(t, spec)
			assert.Equal(t, test.want, exit)
		})
	}
}

func TestCommandEnvironment(t *testing.T) {
	spec, _ := testProgramSpec(t, "about")
	spec.Hostname, spec.Dir = "etcd-main-0", "/var/lib/work"
	spec.Env = []string{"A=1", "PATH=/nowhere:/bin", "B=two words"}
	spec.Rlimits = []Rlimit{{Resource: unix.RLIMIT_NOFILE, Soft: 100, Hard: 200}}
	out, exit := runOutput(t, spec)
	assert.Equal(t, Exit{}, exit)
	for _, line := range []string{
		"pid 1\n", "session 1\n", "uid 0\n", "hostname etcd-main-0\n", "dir /var/lib/work\n", "hard limit of files 200\n",
		`env ["A=1" "PATH=/nowhere:/bin" "B=two words"]` + "\n", "NoNewPrivs: 1\n", "SigBlk: 0000000000000000\n",
	} {
		assert.Contains(t, out, line)
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.NotEqual(t, "etcd-main-0", host)
}

func TestRootContent(t *testing.T) {
	spec, _ := testProgramSpec(t, "ls", "/")
	out, _ := runOutput(t, spec)
	assert.Equal(t, "bin\ndev\nproc\n", out)

	spec, _ = testProgramSpec(t, "ls", "/dev")
	out, _ = runOutput(t, spec)
	assert.Equal(t, "fd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n", out)

	spec, _ = testProgramSpec(t, "processes")
	out, _ = runOutput(t, spec)
	assert.Equal(t, "1\n", out, "no process of the machine")

	spec, _ = testProgramSpec(t, "write", "/dev/null", "x")
	_, exit := runOutput(t, spec)
	assert.Equal(t, Exit{}, exit)
}

func TestNoFileIsInherited(t *testing.T) {
	// A file that a careless program lets its children inherit.
	number, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(number)
	for _, init := range []bool{false, true} {
		spec, _ := testProgramSpec(t, "files")
		spec.Init = init
		out, _ := runOutput(t, spec)
		assert.Equal(t, "0\n1\n2\n", out)
	}
	spec, _ := testProgramSpec(t, "hang")
	var out strings.Builder
	_, err = startBox(t, spec).Exec(t.Context(), Command{Args: []string{"inside", "files"}, Stdout: &out})
	require.NoError(t, err)
	assert.Equal(t, "0\n1\n2\n", out.String())
}

func TestBinds(t *testing.T) {
	data, secret := t.TempDir(), t.TempDir()
	file := filepath.Join(secret, "ca.crt")
	require.NoError(t, os.WriteFile(file, []byte("certificate"), 0o600))
	require.NoError(t, os.Symlink("ca.crt", filepath.Join(secret, "link")))
	log := filepath.Join(t.TempDir(), "termination")
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	binds := []Bind{ // deeper ones first: mounted in a different order than declared
		{Source: secret, Target: "/var/data/ssl/ca", ReadOnly: true},
		{Source: file, Target: "/var/data/one.crt", ReadOnly: true},
		{Source: filepath.Join(secret, "link"), Target: "/etc/linked.crt"},
		{Source: data, Target: "/var/data"},
		{Source: log, Target: "/dev/termination-log"},
	}
	for _, test := range []struct {
		name     string
		args     []string
		readOnly bool
		code     int
		out      string
	}{
		{"file of a folder", []string{"read", "/var/data/ssl/ca/ca.crt"}, false, 0, "certificate"},
		{"file", []string{"read", "/var/data/one.crt"}, false, 0, "certificate"},
		{"link", []string{"read", "/etc/linked.crt"}, false, 0, "certificate"},
		{"to read-only folder", []string{"write", "/var/data/ssl/ca/new", "x"}, false, 99, "open /var/data/ssl/ca/new: read-only file system\n"},
		{"to read-only file", []string{"write", "/var/data/one.crt", "x"}, false, 99, "open /var/data/one.crt: read-only file system\n"},
		{"to folder", []string{"write", "/var/data/new", "x"}, false, 0, ""},
		{"to folder in read-only root", []string{"write", "/var/data/new", "y"}, true, 0, ""},
		{"to tmpfs in read-only root", []string{"write", "/var/data/tmp/new", "y"}, true, 0, ""},
		{"to file", []string{"write", "/dev/termination-log", "the reason"}, true, 0, ""},
		{"to root", []string{"write", "/var/new", "x"}, false, 0, ""},
		{"to read-only root", []string{"write", "/var/new", "x"}, true, 99, "open /var/new: read-only file system\n"},
		{"to settings of the machine", []string{"write", "/proc/sys/kernel/domainname", "x"}, false, 99, "open /proc/sys/kernel/domainname: read-only file system\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, _ := testProgramSpec(t, test.args...)
			spec.Binds, spec.Tmpfs, spec.ReadOnlyRoot = append(binds, spec.Binds...), []string{"/var/data/tmp"}, test.readOnly
			out, exit := runOutput(t, spec)
			assert.Equal(t, test.out, out)
			assert.Equal(t, test.code, exit.Code)
		})
	}
	written, err := os.ReadFile(filepath.Join(data, "new"))
	require.NoError(t, err)
	assert.Equal(t, "y", string(written))
	written, err = os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "the reason", string(written))
	assert.NoFileExists(t, filepath.Join(data, "tmp", "new"))
}

func TestStartErrors(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no program"), 0o755))
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/missing\n"), 0o755))
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	for _, test := range []struct {
		name   string
		change func(*Spec)
		want   string
		is     error
	}{
		{"missing program", func(s *Spec) { s.Args = []string{"/usr/local/bin/x"} }, `starting "/usr/local/bin/x" in its box: no such file or directory`, fs.ErrNotExist},
		{"missing program under init", func(s *Spec) { s.Args, s.Init = []string{"/usr/local/bin/x"}, true }, `starting "/usr/local/bin/x" in its box: no such file or directory`, fs.ErrNotExist},
		{"not in PATH", func(s *Spec) { s.Env = []string{"PATH=/sbin"} }, `starting "inside" in its box: there is no such program in /sbin: no such file or directory`, fs.ErrNotExist},
		{"no program", func(s *Spec) {
			s.Binds, s.Args = append(s.Binds, Bind{Source: text, Target: "/text"}), []string{"/text"}
		}, `starting "/text" in its box: exec format error`, unix.ENOEXEC},
		{"no interpreter", func(s *Spec) {
			s.Binds, s.Args = append(s.Binds, Bind{Source: script, Target: "/script"}), []string{"/script"}
		}, `starting "/script" in its box: no such file or directory: its interpreter or linker is not in the box`, fs.ErrNotExist},
		{"missing source", func(s *Spec) { s.Binds = append(s.Binds, Bind{Source: "/missing/volume", Target: "/data"}) },
			`starting "inside" in its box: bind of "/missing/volume" on "/data": no such file or directory`, fs.ErrNotExist},
		{"target of another kind", func(s *Spec) { s.Binds = append(s.Binds, Bind{Source: text, Target: "/proc"}) },
			`starting "inside" in its box: bind of "` + text + `" on "/proc": a file cannot be mounted on a folder`, nil},
		{"folder on a file", func(s *Spec) { s.Binds = append(s.Binds, Bind{Source: full, Target: "/dev/null"}) },
			`starting "inside" in its box: bind of "` + full + `" on "/dev/null": a folder cannot be mounted on a file`, nil},
		{"relative source", func(s *Spec) { s.Binds = append(s.Binds, Bind{Source: "volume", Target: "/data"}) },
			`starting "inside" in its box: bind of "volume" on "/data": needs absolute paths, and a target below /`, nil},
		{"on the root", func(s *Spec) { s.Binds = append(s.Binds, Bind{Source: "/etc", Target: "/x/.."}) },
			`starting "inside" in its box: bind of "/etc" on "/x/..": needs absolute paths, and a target below /`, nil},
		{"tmpfs on the root", func(s *Spec) { s.Tmpfs = []string{"/"} }, `starting "inside" in its box: tmpfs on "/": needs an absolute path below /`, nil},
		{"root with something in it", func(s *Spec) { s.Root = full }, `starting "inside" in its box: the folder of the root, ` + full + `, is not empty`, nil},
		{"no root", func(s *Spec) { s.Root = "" }, `starting "inside" in its box: root "" is not an absolute path`, nil},
		{"missing root", func(s *Spec) { s.Root = "/missing" }, `starting "inside" in its box: reading the folder of the root: open /missing: no such file or directory`, fs.ErrNotExist},
		{"no command", func(s *Spec) { s.Args = nil }, `starting "" in its box: no command given`, nil},
		{"capability", func(s *Spec) { s.Capabilities = []string{"FLY"} }, `starting "inside" in its box: capability "FLY" does not exist`, nil},
		{"network", func(s *Spec) { s.NetNS = "/missing/netns" }, `starting "inside" in its box: joining network namespace /missing/netns: no such file or directory`, fs.ErrNotExist},
		{"working directory", func(s *Spec) { s.Dir = "/bin/inside" }, `starting "inside" in its box: creating the working directory: mkdir /bin/inside: not a directory`, nil},
		{"limit", func(s *Spec) { s.Rlimits = []Rlimit{{Resource: unix.RLIMIT_NOFILE, Soft: 2, Hard: 1}} },
			`starting "inside" in its box: setting limit 7 to 2, 1: invalid argument`, unix.EINVAL},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, _ := testProgramSpec(t, "exit", "0")
			test.change(&spec)
			process, err := Start(spec)
			assert.Nil(t, process)
			require.EqualError(t, err, test.want)
			if test.is != nil {
				assert.True(t, errors.Is(err, test.is))
			}
		})
	}
	assert.FileExists(t, filepath.Join(full, "file"))
}

func TestMainWithoutInitChild(t *testing.T) {
	spec, _ := testProgramSpec(t, "exit", "0")
	isInitChildCalled = false
	defer func() { isInitChildCalled = true }()
	_, err := Start(spec)
	require.ErrorIs(t, err, errInitChildNotCalled)
}

func TestCapabilities(t *testing.T) {
	// Ports below 1024 are always privileged in a new network namespace. An ordinary user's box
	// does not own its network namespace.
	if isUserNamespaceNeeded() {
		t.Skip("only in a network namespace that is ours; TestInUserNamespace sees to that")
	}
	network := newNetwork(t)
	listen := func(capabilities ...string) (string, Exit) {
		spec, _ := testProgramSpec(t, "listen", ":443")
		spec.NetNS, spec.Capabilities = network, capabilities
		return runOutput(t, spec)
	}
	out, exit := listen("CHOWN")
	assert.Contains(t, out, "permission denied")
	assert.Equal(t, 99, exit.Code)
	for _, names := range [][]string{{"NET_BIND_SERVICE"}, {"CHOWN", "cap_net_bind_service"}, {"ALL"}} {
		out, _ = listen(names...)
		assert.Equal(t, "listened\n", out, names)
	}
}

func TestCapabilitySets(t *testing.T) {
	sets := func(out string) (found []string) {
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "Cap") {
				found = append(found, strings.TrimSpace(line))
			}
		}
		return found
	}
	for _, init := range []bool{false, true} {
		spec, _ := testProgramSpec(t, "about")
		spec.Capabilities, spec.Init = []string{"KILL", "CHECKPOINT_RESTORE"}, init
		out, _ := runOutput(t, spec)
		const both = "0000010000000020"
		assert.Equal(t, []string{"CapInh: " + both, "CapPrm: " + both, "CapEff: " + both, "CapBnd: " + both, "CapAmb: " + both}, sets(out))
	}

	spec, _ := testProgramSpec(t, "hang")
	var out strings.Builder
	_, err := startBox(t, spec).Exec(t.Context(), Command{Args: []string{"inside", "about"}, Stdout: &out})
	require.NoError(t, err)
	const none = "0000000000000000"
	assert.Equal(t, []string{"CapInh: " + none, "CapPrm: " + none, "CapEff: " + none, "CapBnd: " + none, "CapAmb: " + none}, sets(out.String()))
}

func TestParseCapabilities(t *testing.T) {
	assert.Len(t, capabilityNames, unix.CAP_LAST_CAP+1)
	set, err := parseCapabilities([]string{"CAP_SYS_ADMIN", "chown"})
	require.NoError(t, err)
	assert.Equal(t, capabilitySet(1<<unix.CAP_SYS_ADMIN|1<<unix.CAP_CHOWN), set)
	set, err = parseCapabilities(nil)
	require.NoError(t, err)
	assert.Zero(t, set)
	_, err = parseCapabilities([]string{"CAP_NO"})
	require.EqualError(t, err, `capability "CAP_NO" does not exist`)
}

func TestNetworkNamespace(t *testing.T) {
	if isUserNamespaceNeeded() {
		t.Skip("an ordinary user cannot make one; TestInUserNamespace sees to that")
	}
	network := newNetwork(t)
	link, err := os.Readlink(network)
	require.NoError(t, err)
	own, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.NotEqual(t, own, link)

	spec, _ := testProgramSpec(t, "hang")
	spec.NetNS = network
	process := startBox(t, spec)
	joined, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", process.PID()))
	require.NoError(t, err)
	assert.Equal(t, link, joined)

	spec, _ = testProgramSpec(t, "hang")
	other := startBox(t, spec)
	joined, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/net", other.PID()))
	require.NoError(t, err)
	assert.Equal(t, own, joined, "that of the caller")

	var out strings.Builder
	_, err = process.Exec(t.Context(), Command{Args: []string{"inside", "read", "/proc/net/dev"}, Stdout: &out})
	require.NoError(t, err)
	assert.Contains(t, out.String(), "lo:")
	assert.NotContains(t, out.String(), "eth0")
}
