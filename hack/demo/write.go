// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pergola-dev/pergola/hack/writeprobe"
)

// writeUntilInterrupted writes ten times a second until it is interrupted. It reads the kubeconfig
// in file again after each change.
func writeUntilInterrupted(ctx context.Context, file, namespace string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, read, err := clientFromFile(file)
	if err != nil {
		return err
	}
	w := writeprobe.Start(context.WithoutCancel(ctx), client, namespace)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			continue
		}
		info, err := os.Stat(file)
		if err != nil || info.ModTime().Equal(read) {
			continue
		}
		if client, read, err = clientFromFile(file); err != nil {
			continue // it is not written completely
		}
		w.UseClient(client)
		fmt.Println("The client uses the new credentials.")
	}
	counts := w.Stop()
	failed := 0
	for _, n := range counts.Failed {
		failed += n
	}
	fmt.Printf("%d writes, the slowest took %s; %d lost connections were opened again; %d writes failed.\n", counts.Written, counts.Slowest.Round(100*time.Millisecond), counts.LostConnections, failed)
	if len(counts.Failed) == 0 && counts.Written > 0 {
		return nil
	}
	var out []error
	for _, what := range slices.Sorted(maps.Keys(counts.Failed)) {
		out = append(out, fmt.Errorf("%d times: %s", counts.Failed[what], what))
	}
	return errors.Join(append(out, errors.New("the client had failed writes, or none at all"))...)
}

// clientFromFile returns a client for the kubeconfig in a file, and the time of the file's last
// change.
func clientFromFile(file string) (kubernetes.Interface, time.Time, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, time.Time{}, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, time.Time{}, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	return client, info.ModTime(), err
}
