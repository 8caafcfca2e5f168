// SPDX-License-Identifier: Apache-2.0

package tutorial

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/testclusters"
)

// TestTutorial follows docs/tutorial/first-garden.md word for word in a copy of the repository. It
// writes the files and runs the commands of the page in one shell.
func TestTutorial(t *testing.T) {
	const root = "../.."
	if missing := testclusters.MissingRequirement(root, false); missing != "" {
		t.Skip(missing)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/tutorial/first-garden.md"))
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "pergola")
	copyTracked(t, root, copied)
	t.Cleanup(func() {
		out, err := exec.Command("make", "-C", copied, "local-clean").CombinedOutput()
		assert.NoError(t, err, "%s", out)
	})

	file := regexp.MustCompile("(?m)^`([a-z./-]+\\.yaml)` ")
	block := regexp.MustCompile("(?ms)^```(sh|yaml)\n(.*?)^```$")
	script := "set -x\ncd " + copied + "\n"
	text := string(page)
	files := 0
	for _, at := range block.FindAllStringSubmatchIndex(text, -1) {
		language, content := text[at[2]:at[3]], text[at[4]:at[5]]
		switch {
		case language == "yaml":
			names := file.FindAllStringSubmatch(text[:at[0]], -1)
			require.NotEmpty(t, names)
			script += "cat > " + names[len(names)-1][1] + " <<'END'\n" + content + "END\n"
			files++
		case strings.Contains(content, "make local-clean"):
		case strings.HasPrefix(content, "pergola diff"):
			script += strings.TrimSpace(content) + " || test $? -eq 1 || exit\n"
		default:
			for line := range strings.Lines(content) {
				script += strings.TrimSpace(line) + " || exit\n"
			}
		}
	}
	require.Equal(t, 3, files)

	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "Valid: 1 warning in 1 file.")
	assert.Contains(t, string(out), "Landscape mine: Ready\n")
	assert.Contains(t, string(out), "restarts kube-apiserver")
	assert.Contains(t, string(out), "--event-ttl=2h")
}

// copyTracked copies the files that Git tracks, as a clone has them.
func copyTracked(t *testing.T, from, to string) {
	t.Helper()
	script := `git -C "$1" ls-files -z -co --exclude-standard | tar -C "$1" --null --ignore-failed-read -T - -cf - | (mkdir -p "$2" && tar -C "$2" -xf -)`
	out, err := exec.Command("bash", "-c", script, "copy", from, to).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
