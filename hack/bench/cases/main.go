// SPDX-License-Identifier: Apache-2.0

// Command cases runs one case of hack/bench that is measured inside of a process, and prints a JSON
// object with seconds, cpuSeconds, requests and parts. Only hack/bench starts it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"
)

// arguments are the flags of all cases; each case uses some of them.
type arguments struct {
	dir, kubeconfig, namespace, file, owner string
	objects, runs                           int
	warm                                    bool
}

// sample is the JSON output of a case.
type sample struct {
	Seconds    float64            `json:"seconds"`
	CPUSeconds float64            `json:"cpuSeconds"`
	Requests   map[string]int     `json:"requests,omitzero"`
	Parts      map[string]float64 `json:"parts,omitempty"`
}

func cases() map[string]func(context.Context, arguments) (sample, error) {
	return map[string]func(context.Context, arguments) (sample, error){
		"validate-again": validateAgain,
		"json-schemas":   jsonSchemas,
		"render":         renderLandscape,
		"render-owner":   renderOwner,
		"render-floor":   renderFloor,
		"apply":          applyOnce,
		"apply-again":    applyAgain,
		"floor":          floorOnce,
		"floor-again":    floorAgain,
		"wipe":           deleteObjects,
		"manifest":       writeManifest,
	}
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	all := cases()
	if len(args) == 0 || all[args[0]] == nil {
		return fmt.Errorf("usage: cases CASE, one of %v", slices.Sorted(maps.Keys(all)))
	}
	var a arguments
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&a.dir, "dir", "", "landscape folder")
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "cluster")
	flags.StringVar(&a.namespace, "namespace", "", "namespace of the objects")
	flags.StringVar(&a.file, "file", "", "file or folder to write")
	flags.StringVar(&a.owner, "owner", "", "owner to render, such as shoot garden-dev/app")
	flags.IntVar(&a.objects, "objects", 500, "number of objects")
	flags.IntVar(&a.runs, "runs", 1, "number of changes to measure")
	profile := flags.String("profile", "", "file for a CPU profile of the whole case")
	flags.BoolVar(&a.warm, "warm", false, "measure the second time")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	result, err := all[args[0]](ctx, a)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// measureTime measures the time of do, and the CPU time of this process.
func measureTime(do func() error) (sample, error) {
	cpu, start := cpuSeconds(), time.Now()
	err := do()
	return sample{Seconds: time.Since(start).Seconds(), CPUSeconds: cpuSeconds() - cpu}, err
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
