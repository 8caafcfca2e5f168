// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// arguments are the flags of the command.
type arguments struct {
	operator, runtime, virtual, landscape, key string
	work, profile                              string
	pushes                                     int
	idle                                       time.Duration
	garden                                     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) == 5 && os.Args[1] == "operator" {
		return runProfiledOperator(ctx, os.Args[2], os.Args[3], os.Args[4])
	}
	var a arguments
	flag.StringVar(&a.operator, "operator", "", "the program with the subcommand operator")
	flag.StringVar(&a.runtime, "runtime", "", "kubeconfig of the runtime cluster")
	flag.StringVar(&a.virtual, "virtual", "", "kubeconfig of the virtual garden")
	flag.StringVar(&a.landscape, "landscape", "", "folder of the landscape; a copy of it is pushed")
	flag.StringVar(&a.key, "key", "", "age key of its Secrets")
	flag.StringVar(&a.work, "work", "", "folder for repository, cache and log")
	flag.StringVar(&a.profile, "profile", "", "folder for profiles; runs the operator in this program then")
	flag.IntVar(&a.pushes, "pushes", 30, "pushes of one changed Shoot, for each way to detect them; 0 leaves them out")
	flag.BoolVar(&a.garden, "garden", false, "the landscape is a Garden alone: measure its reconciliation, and a change of a flag of its API server")
	flag.DurationVar(&a.idle, "idle", time.Minute, "how long to observe while nothing changes")
	flag.Parse()
	samples, err := measure(ctx, a)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(samples)
}
