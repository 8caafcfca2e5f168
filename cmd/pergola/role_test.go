// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// envReportLogger is a variable that makes the test binary run a command line and print whether
// controller-runtime has a logger. Only the first logger that is set counts.
const envReportLogger = "PERGOLA_TEST_ASKED_FOR_LOG"

func reportLogger() {
	code := runProgram(newRoot(), os.Args[1:])
	ctrllog.SetLogger(funcr.New(func(string, string) { fmt.Println("nobody has set it") }, funcr.Options{}))
	ctrllog.Log.Info("asked")
	os.Exit(code)
}

// TestLogOfControllerRuntime: without a logger, controller-runtime writes a stack to standard error
// when it first logs after half a minute.
func TestLogOfControllerRuntime(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{
		{"tree", "--kubeconfig", none}, {"sync", "a", "--kubeconfig", none}, {"install", "--set", "image.repository=a", "--kubeconfig", none},
		{"gardenlet", "--seed", "a", "--garden-kubeconfig", none}, {"operator", "--kubeconfig", none}, {"resource-manager", "--kubeconfig", none},
		{"admission-controller", "--kubeconfig", none},
	} {
		cmd := exec.Command(self, args...)
		cmd.Env = append(os.Environ(), envReportLogger+"=1")
		out, err := cmd.CombinedOutput()
		assert.Error(t, err, args) // the kubeconfig does not exist
		assert.NotContains(t, string(out), "nobody has set it", args)
		assert.Contains(t, string(out), none, args)
	}
}

func TestReceiverProxies(t *testing.T) {
	o := operatorFlags{proxies: []string{"10.1.2.3/8", "fd00::/8"}}
	found, err := o.receiverProxies()
	require.NoError(t, err)
	assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, found)
	for _, wrong := range []string{"balancer", "10.0.0.1", "10.0.0.0/33", ""} {
		out := pergola(t, "operator", "--receiver-proxy", wrong)
		assert.Equal(t, exitUsage, out.code)
		assert.Contains(t, out.stderr, fmt.Sprintf("--receiver-proxy %q: want a range of addresses", wrong))
	}
}

// TestPersistentPreRun: cobra runs only the PersistentPreRun of the nearest command.
func TestPersistentPreRun(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			assert.Nil(t, sub.PersistentPreRun, sub.CommandPath())
			assert.Nil(t, sub.PersistentPreRunE, sub.CommandPath())
			walk(sub)
		}
	}
	root := newRoot()
	require.NotNil(t, root.PersistentPreRun)
	walk(root)
}

// TestRolesLogAlike: all roles have the same log flags.
func TestRolesLogAlike(t *testing.T) {
	for _, role := range []string{"operator", "gardenlet", "resource-manager", "admission-controller"} {
		cmd, _, err := newRoot().Find([]string{role})
		require.NoError(t, err)
		for name, want := range map[string]string{"log-level": "info", "log-format": "json"} {
			flag := cmd.Flags().Lookup(name)
			if assert.NotNil(t, flag, "%s --%s", role, name) {
				assert.Equal(t, want, flag.DefValue)
			}
		}
		for name, none := range map[string]string{"health-port": "-1 for none", "metrics-port": "-1 for none"} {
			if flag := cmd.Flags().Lookup(name); role != "admission-controller" || name == "health-port" {
				require.NotNil(t, flag, "%s --%s", role, name)
				assert.True(t, strings.HasSuffix(flag.Usage, none), flag.Usage)
			}
		}
	}
}
