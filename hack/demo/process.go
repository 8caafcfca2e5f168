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

// flag shows a flag of the processes of some pods, when all of them have the value: those of a
// former revision end a little after the next ones have begun.
func flag(ctx context.Context, pod, name, value string) error {
	want := "--" + name + "=" + value
	var lines []string
	var before atomic.Value // the pod of a process that does not have it
	before.Store("the first one")
	defer patiently(func() string {
		return fmt.Sprintf("for the end of %v, which is of the former revision: API servers end slowly, for the sake of their clients", before.Load())
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

// process of a pod.
type process struct {
	pod  string
	args []string
}

// processes of pods whose names begin with a text, in the process namespace that this is in.
func processes(pod string) ([]process, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []process
	for _, folder := range folders {
		// It may end, or be another user's.
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
