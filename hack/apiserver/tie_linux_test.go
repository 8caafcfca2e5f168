// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// starterRoleVariable makes this program start servers and wait to be killed.
const starterRoleVariable = "APISERVER_STARTED"

func TestMain(m *testing.M) {
	if os.Getenv(starterRoleVariable) == "" {
		os.Exit(m.Run())
	}
	env := &envtest.Environment{}
	config, err := StartEnvironment(env)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(strings.Trim(strings.TrimPrefix(config.Host, "https:"), "/"), env.ControlPlane.Etcd.URL.Host)
	<-time.After(10 * time.Minute)
}

// TestServersEndWithTheirStarter checks that no server answers after its starter was killed.
func TestServersEndWithTheirStarter(t *testing.T) {
	SkipIfUnavailable(t)
	temporary := t.TempDir()
	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), starterRoleVariable+"=yes", "TMPDIR="+temporary)
	out, err := starter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, starter.Start())
	t.Cleanup(func() { _ = starter.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	hosts := strings.Fields(line)
	require.Len(t, hosts, 2, line)
	answers := func(host string) bool {
		connection, err := net.Dial("tcp", host)
		return err == nil && connection.Close() == nil
	}
	for _, host := range hosts {
		assert.True(t, answers(host), host)
	}
	require.NoError(t, starter.Process.Kill())
	require.Error(t, starter.Wait())
	for _, host := range hosts {
		require.Eventually(t, func() bool { return !answers(host) }, time.Minute, 20*time.Millisecond, "%s still answers", host)
	}
}

// TestExecProgramFails checks the error of an invalid process ID.
func TestExecProgramFails(t *testing.T) {
	t.Setenv(assetsVariable, t.TempDir())
	assert.ErrorContains(t, execProgram("x", "etcd"), starterVariable)
}
