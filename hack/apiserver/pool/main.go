// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

func main() {
	log.SetLogger(logr.Discard()) // for envtest, which returns errors
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: pool COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pool of API servers:", err)
		os.Exit(2)
	}
	os.Exit(code)
}

// run returns the exit code of the command.
func run(command []string) (int, error) {
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	// The path is the same for each run in a checkout, as cached test results depend on the
	// environment. It is short, as socket paths have to be.
	sum := sha256.Sum256([]byte(dir))
	socket := filepath.Join(os.TempDir(), "pergola-api-servers-"+hex.EncodeToString(sum[:6]))
	if connection, err := net.Dial("unix", socket); err == nil {
		_ = connection.Close()
		return 0, fmt.Errorf("another run in %s uses %s: wait for its end", dir, socket)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	if err := os.Chmod(socket, 0o600); err != nil {
		return 0, err
	}
	p := &pool{}
	defer p.stop()
	go p.serve(listener)

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), apiserver.PoolVariable+"="+socket)
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}
