// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/operator"
	"github.com/pergola-dev/pergola/landscapes/evaluation"
)

// runProfiledOperator does what `pergola operator` does and writes profiles, for which the product
// has no flag. It writes the heap whenever it is the largest so far; .cpu and .allocs cover the
// whole run.
func runProfiledOperator(ctx context.Context, kubeconfig, cache, profile string) (err error) {
	debug.SetGCPercent(50) // as in the command
	file, err := os.Create(profile + ".cpu")
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	defer func() {
		pprof.StopCPUProfile()
		err = errors.Join(err, file.Close(), writeProfile("allocs", profile+".allocs"), writeProfile("heap", profile+".rest"))
	}()
	go writeLargestHeap(ctx, profile+".heap")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	role := &operator.Role{
		Config: config, Namespace: namespace, Catalogue: components.FS, Evaluator: evaluation.InProcess{}, CacheDir: cache, Version: components.Version,
		Serving: operator.Serving{HealthPort: -1, MetricsPort: -1, OnListen: func(_, _, receivers string) { log.Info("listening", "receivers", receivers) }},
		Holder:  "profiled-" + strings.ReplaceAll(profile, "/", "-"), Clock: clock.RealClock{}, Log: log,
	}
	return role.Run(ctx)
}

// writeLargestHeap writes the heap profile when the heap has grown by a twentieth.
func writeLargestHeap(ctx context.Context, path string) {
	most := uint64(0)
	for sleep(ctx, 200*time.Millisecond) == nil {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		if now.HeapAlloc < most+most/20 {
			continue
		}
		most = now.HeapAlloc
		if err := writeProfile("heap", path); err != nil {
			slog.Error("the profile cannot be written", "error", err)
			return
		}
	}
}

func writeProfile(name, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close())
}
