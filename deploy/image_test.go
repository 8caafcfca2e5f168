package deploy_test

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var image = flag.Bool("image", false, "build the program as the image has it, twice (takes minutes)")

// buildOfImage gives the arguments of go build in the Dockerfile.
func buildOfImage(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	found := regexp.MustCompile(`go build (.+) -ldflags '([^']+)' -o \S+ (\S+)`).FindStringSubmatch(string(data))
	require.NotNil(t, found)
	return append(append([]string{"build"}, strings.Fields(found[1])...), "-ldflags", found[2], "-o", "OUT", found[3])
}

// TestDockerfile holds what can be seen without building.
func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	text := string(data)
	args := buildOfImage(t)
	for _, want := range []string{"-trimpath", "-buildvcs=false", "timetzdata"} {
		assert.True(t, slices.Contains(args, want), want)
	}
	for _, want := range []string{"CGO_ENABLED=0", "USER 65532:65532", `ENTRYPOINT ["/usr/bin/pergola"]`, "ca-certificates.crt", "SOURCE_DATE_EPOCH"} {
		assert.Contains(t, text, want)
	}
	final := text[strings.LastIndex(text, "\nFROM "):]
	assert.NotContains(t, final, "RUN ", "there is no shell")
	// The version of Go is that of go.mod; bases have no host of a registry.
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	assert.Regexp(t, `(?m)^ARG GO_IMAGE=golang:`+regexp.QuoteMeta(string(language[1]))+`\.\d+-\w+$`, text)
	assert.Regexp(t, `(?m)^ARG BASE_IMAGE=scratch$`, text)
}

// TestContextOfTheImage: every package of the program is among what the builder gets.
func TestContextOfTheImage(t *testing.T) {
	data, err := os.ReadFile("Dockerfile.dockerignore")
	require.NoError(t, err)
	out, err := exec.Command("go", "list", "-deps", "-tags", "timetzdata", "-f", "{{if not .Standard}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}", "../cmd/pergola").Output()
	require.NoError(t, err)
	for _, p := range strings.Fields(string(out)) {
		p = strings.TrimPrefix(p, "github.com/pergola-dev/pergola/")
		ok := false
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if dir, included := strings.CutPrefix(line, "!"); included && (p == dir || strings.HasPrefix(p, dir+"/")) {
				ok = true
			}
			if line != "*" && !strings.HasPrefix(line, "**") && !strings.HasPrefix(line, "!") && line != "" && !strings.HasPrefix(line, "#") && (p == line || strings.HasPrefix(p, line+"/")) {
				ok = false
			}
		}
		assert.True(t, ok, "%s is not copied into the builder", p)
	}
}

// TestImageRuns builds the program as the Dockerfile does, from two folders, and runs it as the pod does: alone on a file system that it may
// not write to, as another user.
func TestImageRuns(t *testing.T) {
	if !*image {
		t.Skip("left out, as it takes minutes: go test ./deploy -run TestImageRuns -image")
	}
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	var sums [][sha256.Size]byte
	for _, name := range []string{"a", "b"} {
		work := filepath.Join(t.TempDir(), name)
		require.NoError(t, exec.Command("cp", "-r", "..", work).Run())
		args := buildOfImage(t)
		out := filepath.Join(root, name)
		args[slices.Index(args, "OUT")] = out
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = work, append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=-mod=readonly")
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, string(text))
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		sums = append(sums, sha256.Sum256(data))
		assert.False(t, bytes.Contains(data, []byte(work)), "the folder of the build is in the program")
	}
	assert.Equal(t, sums[0], sums[1], "two builds differ")
	program, err := elf.Open(filepath.Join(root, "a"))
	require.NoError(t, err)
	defer program.Close()
	libraries, err := program.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries)
	for _, section := range program.Progs {
		assert.NotEqual(t, elf.PT_INTERP, section.Type, "needs a loader")
	}
	if os.Getuid() != 0 {
		t.Skip("the rest needs root: chroot and another user")
	}
	require.NoError(t, os.Chmod(root, 0o555))
	for _, args := range [][]string{{"--version"}, {"install", "--set", "image.repository=pergola", "-o", "yaml"}, {"gardenlet", "--help"}} {
		cmd := exec.Command("/a", args...)
		cmd.Env, cmd.Dir = []string{}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		text, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%v: %s", args, text)
	}
}
