// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// imageBuildArgs returns the arguments of go build in the Dockerfile.
func imageBuildArgs(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	found := regexp.MustCompile(`go build (.+) -ldflags "([^"]+)" -o \S+ (\S+)`).FindStringSubmatch(string(data))
	require.NotNil(t, found)
	return append(append([]string{"build"}, strings.Fields(found[1])...), "-ldflags", found[2], "-o", "OUT", found[3])
}

// TestDockerfile checks the Dockerfile without building it.
func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	text := string(data)
	args := imageBuildArgs(t)
	for _, want := range []string{"-trimpath", "-buildvcs=false"} {
		assert.True(t, slices.Contains(args, want), want)
	}
	for _, want := range []string{"CGO_ENABLED=0", "USER 65532:65532", `ENTRYPOINT ["/usr/bin/pergola"]`, "ca-certificates.crt", "SOURCE_DATE_EPOCH"} {
		assert.Contains(t, text, want)
	}
	final := text[strings.LastIndex(text, "\nFROM "):]
	assert.NotContains(t, final, "RUN ", "there is no shell")
	// The Go version is that of go.mod; base images have no registry host.
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	assert.Regexp(t, `(?m)^ARG GO_IMAGE=golang:`+regexp.QuoteMeta(string(language[1]))+`\.\d+-\w+$`, text)
	assert.Regexp(t, `(?m)^ARG BASE_IMAGE=scratch$`, text)
}

// TestMakeAndImageBuildAlike: `make` builds with the flags of the image, so that both share a build
// cache and behave alike.
func TestMakeAndImageBuildAlike(t *testing.T) {
	args := imageBuildArgs(t)
	args[slices.Index(args, "OUT")+1] = `"$2"`
	args[slices.Index(args, "OUT")] = `"$1"`
	ldflags := slices.Index(args, "-ldflags") + 1
	args[ldflags] = `"` + args[ldflags] + `"`
	data, err := os.ReadFile("../hack/build.sh")
	require.NoError(t, err)
	assert.Contains(t, string(data), "\ngo "+strings.Join(args, " ")+"\n")
	assert.Contains(t, string(data), "\nexport CGO_ENABLED=0\n")
	data, err = os.ReadFile("../Makefile")
	require.NoError(t, err)
	assert.Contains(t, string(data), "hack/build.sh $(BIN)/pergola ./cmd/pergola")
}

// dockerignoreLines returns the lines of Dockerfile.dockerignore.
func dockerignoreLines(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("Dockerfile.dockerignore")
	require.NoError(t, err)
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// isInBuildContext reports whether a file or folder is in the build context: the last line that
// matches it, or one of its folders, decides. Lines have the forms in use: "*", "folder",
// "!folder", and "**/" with a name pattern.
func isInBuildContext(lines []string, name string) bool {
	in := true
	for _, line := range lines {
		pattern, included := strings.CutPrefix(line, "!")
		fits := pattern == "*" || name == pattern || strings.HasPrefix(name, pattern+"/")
		if names, anywhere := strings.CutPrefix(pattern, "**/"); anywhere {
			fits = slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
				ok, err := path.Match(names, part)
				return ok && err == nil
			})
		}
		if fits {
			in = included
		}
	}
	return in
}

// TestBuildContext: the build context has no key and no history. TestImageRuns checks that it
// has everything the build needs.
func TestBuildContext(t *testing.T) {
	lines := dockerignoreLines(t)
	for name, want := range map[string]bool{
		"go.mod": true, "cmd/pergola/main.go": true, "components/components.go": true, "landscapes/doc.go": true, "deploy/charts/pergola/values.yaml": true,
		".git/config": false, "cmd/pergola/main_test.go": false, "landscapes/local/.sops/age.key": false, "landscapes/local/landscape.yaml": false,
		"bin/pergola": false, "hack/local/main.go": false, "hack/apiserver/apiserver.go": false, "plan/testdata/plan.html": false, "plan/golden/record.go": true, ".local/demo/token": false,
	} {
		assert.Equal(t, want, isInBuildContext(lines, name), name)
	}
}

// copyBuildContext copies the build context into a folder. With again, Go files get an extra line
// that changes nothing but forces a recompilation.
func copyBuildContext(t *testing.T, dir string, anew bool) {
	t.Helper()
	lines := dockerignoreLines(t)
	root := os.DirFS("..")
	require.NoError(t, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir() && !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "!"+name+"/") }) && !isInBuildContext(lines, name):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		case !isInBuildContext(lines, name):
			return nil
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if anew && strings.HasSuffix(name, ".go") {
			data = append(data, "\n// Compiled anew.\n"...)
		}
		return os.WriteFile(filepath.Join(dir, name), data, 0o644)
	}))
}

// TestImageRuns builds the program as the Dockerfile does, from two folders, and runs it as the pod
// does. It runs alone on a read-only file system as another user. Both need root; without root it
// runs unrestricted from its build folder.
//
// Equal bytes of both builds show that neither the folder nor a full recompilation of this module
// leaves a trace. Dependencies and the standard library come from the build cache: for these, and
// for other machines, the test relies on the Go project.
func TestImageRuns(t *testing.T) {
	root := t.TempDir()
	var sums [][sha256.Size]byte
	for i, name := range []string{"a", "b"} {
		work := filepath.Join(t.TempDir(), "folder-"+name)
		require.NoError(t, os.Mkdir(work, 0o755))
		copyBuildContext(t, work, i > 0)
		args := imageBuildArgs(t)
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
		assert.False(t, bytes.Contains(data, []byte("folder-"+name)), "the folder of the build is in the program")
	}
	assert.Equal(t, sums[0], sums[1], "two builds differ")
	require.NoError(t, os.Remove(filepath.Join(root, "b")))
	program, err := elf.Open(filepath.Join(root, "a"))
	require.NoError(t, err)
	defer program.Close()
	libraries, err := program.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries)
	for _, section := range program.Progs {
		assert.NotEqual(t, elf.PT_INTERP, section.Type, "needs a loader")
	}
	require.NoError(t, os.Chmod(root, 0o555))
	t.Cleanup(func() { _ = os.Chmod(root, 0o755) }) // so that the folder can be removed
	for _, args := range [][]string{{"--version"}, {"install", "--set", "image.repository=pergola", "-o", "yaml"}, {"gardenlet", "--help"}} {
		cmd := exec.Command(filepath.Join(root, "a"), args...)
		cmd.Env, cmd.Dir = []string{}, root
		if os.Getuid() == 0 {
			cmd.Path, cmd.Dir = "/a", "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		}
		text, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%v: %s", args, text)
		assert.NotEmpty(t, text, args)
	}
}
