// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// waitForFlag waits until all processes of some pods have the value of a flag, and prints them.
// Processes of the previous revision end a little after the new ones have started.
func waitForFlag(ctx context.Context, pod, name, value string) error {
	want := "--" + name + "=" + value
	var lines []string
	var before atomic.Value // the pod of a process without the value
	before.Store("the first one")
	defer reportWait(func() string {
		return fmt.Sprintf("for the end of %v, which has the previous revision: API servers stop slowly, so that clients can reconnect", before.Load())
	})()
	err := poll(ctx, fmt.Sprintf("the processes of pods %s… to have %s", pod, want), func() (bool, error) {
		found, err := processes(pod)
		if err != nil {
			return false, err
		}
		lines = lines[:0]
		for _, p := range found {
			if !slices.Contains(p.args, want) {
				before.Store("pod " + p.pod)
				return false, nil
			}
			lines = append(lines, fmt.Sprintf("%s in pod %s: … %s …", filepath.Base(p.args[0]), p.pod, want))
		}
		return len(lines) > 0, nil
	})
	if err != nil {
		return err
	}
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
	return nil
}

// process is a process of a pod.
type process struct {
	pod  string
	args []string
}

// processes returns the processes of pods POD…, in the PID namespace of this process.
func processes(pod string) ([]process, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []process
	for _, folder := range folders {
		// The process may have ended, or belong to another user.
		environment, _ := os.ReadFile(filepath.Join(folder, "environ"))
		command, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || len(command) == 0 {
			continue
		}
		for _, variable := range strings.Split(string(environment), "\x00") {
			if name, found := strings.CutPrefix(variable, "HOSTNAME="); found && strings.HasPrefix(name, pod) {
				out = append(out, process{pod: name, args: strings.Split(string(bytes.TrimRight(command, "\x00")), "\x00")})
			}
		}
	}
	return out, nil
}
