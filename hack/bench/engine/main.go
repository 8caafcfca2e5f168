// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// arguments are the flags of all commands; each command uses some of them.
type arguments struct {
	contender, kubeconfig, controller, definitions string
	apiserver, etcd                                int
	bundles, changes, drift, workers               int
	wait                                           bool
	log, profile                                   string
	patience                                       time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, arguments) error{"measure": measure, "patch": patchCommand, "manager": managerCommand}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("usage: engine measure|patch|manager (see hack/bench/README.md)")
	}
	var a arguments
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&a.contender, "contender", "", "floor, pergola or flux")
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "an empty cluster")
	flags.StringVar(&a.controller, "controller", "", "the program of the contender")
	flags.StringVar(&a.definitions, "definitions", "", "files or folders of definitions of the contender, separated by commas")
	flags.IntVar(&a.apiserver, "apiserver", 0, "process id of the API server")
	flags.IntVar(&a.etcd, "etcd", 0, "process id of etcd")
	flags.IntVar(&a.bundles, "bundles", 1000, "number of bundles, of four objects each")
	flags.IntVar(&a.changes, "changes", 20, "number of consecutive changes of one object")
	flags.IntVar(&a.drift, "drift", 100, "number of objects that drift at once")
	flags.IntVar(&a.workers, "workers", 20, "number of bundles that a controller works on at a time")
	flags.BoolVar(&a.wait, "wait", false, "let Flux check the health of the objects that it applies, as Pergola always does")
	flags.StringVar(&a.log, "log", "", "file for the output of the controller")
	flags.StringVar(&a.profile, "profile", "", "folder for profiles: run Pergola's manager in this program, not -controller")
	flags.DurationVar(&a.patience, "patience", 15*time.Minute, "how long one scenario may take")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	return commands[args[0]](ctx, a)
}

// measure runs all scenarios with one contender and prints their samples.
func measure(ctx context.Context, a arguments) error {
	s, err := newServer(a)
	if err != nil {
		return err
	}
	c, err := newContender(a, s)
	if err != nil {
		return err
	}
	samples, err := scenarios{arguments: a, server: s, contender: c}.run(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", a.contender, err)
	}
	return json.NewEncoder(os.Stdout).Encode(samples)
}

func newContender(a arguments, s *server) (contender, error) {
	b := base{arguments: a, server: s}
	switch a.contender {
	case "floor":
		return &floor{base: b}, nil
	case "pergola":
		return &pergola{base: b}, nil
	case "flux":
		return &flux{base: b}, nil
	}
	return nil, fmt.Errorf("-contender %q: want %s", a.contender, strings.Join([]string{"floor", "pergola", "flux"}, ", "))
}
