// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/resourcemanager"
)

// managerCommand does what `pergola resource-manager` does and writes profiles, for which the
// product has no flag.
func managerCommand(ctx context.Context, a arguments) (err error) {
	stop, err := profileCPU(a.profile + ".cpu")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	config, err := clientcmd.BuildConfigFromFlags("", a.kubeconfig)
	if err != nil {
		return err
	}
	cluster, err := conventions.NewCluster("source", config, resourcemanager.SourceOptions(""))
	if err != nil {
		return err
	}
	defer cluster.Close()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	work, err := resourcemanager.New(resourcemanager.Options{Source: cluster, Target: cluster, Timing: resourcemanager.Timing{Workers: a.workers, SyncPeriod: a.patience * 4}, Log: log})
	if err != nil {
		return err
	}
	mgr, err := manager.New(config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		return err
	}
	if err := mgr.Add(work); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	log.Info("requests", "byVerb", fmt.Sprint(cluster.Requests()))
	return profileMemory(a.profile)
}

func profileCPU(path string) (stop func() error, err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// profileMemory writes profiles of live memory and of all allocations.
func profileMemory(prefix string) error {
	for _, name := range []string{"heap", "allocs"} {
		file, err := os.Create(prefix + "." + name)
		if err != nil {
			return err
		}
		if err := errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close()); err != nil {
			return err
		}
	}
	return nil
}
