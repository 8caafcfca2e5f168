// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testclusters

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// starterVariable makes this program start clusters in the folder that it names, and be killed.
const starterVariable = "TESTCLUSTERS_STARTED"

func TestMain(m *testing.M) {
	dir := os.Getenv(starterVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	p := Programs{Root: dir, State: filepath.Join(dir, "state"), Local: filepath.Join(dir, "local"), KeepClusters: os.Getenv("KEEP") != ""}
	for range 2 {
		if _, err := p.Up(); err != nil {
			panic(err)
		}
	}
	itself, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = itself.Kill()
	}
	panic(err)
}

// TestClustersAreCleanedUpAfterTheTest checks that no clusters outlive a killed test, except with
// Keep.
func TestClustersAreCleanedUpAfterTheTest(t *testing.T) {
	for name, keep := range map[string]string{"gone": "", "kept": "yes"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			said := filepath.Join(dir, "said")
			// The stand-in logs its arguments.
			require.NoError(t, os.WriteFile(filepath.Join(dir, "local"), []byte("#!/bin/sh\necho \"$@\" >> '"+said+"'\necho '{}'\n"), 0o700))
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), starterVariable+"="+dir, "KEEP="+keep)
			require.Error(t, cmd.Run(), "it was killed")
			state := "--dir " + filepath.Join(dir, "state")
			want := state + " up --json\n" + state + " up --json\n"
			if keep == "" {
				want += state + " clean\n"
			}
			require.Eventually(t, func() bool { text, err := os.ReadFile(said); return err == nil && string(text) == want }, time.Minute, 10*time.Millisecond)
			if keep != "" {
				assert.NoError(t, exec.Command("sh", "-c", `! ps -eo args | grep -v grep | grep -q "`+state+` clean"`).Run(), "nobody waits to clean them")
			}
		})
	}
}
