// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/hack/local/living/etcds"
)

// memberListTimeout limits the first answer of an Etcd. The snapshot has no time limit.
const memberListTimeout = 30 * time.Second

func saveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "save CONTEXT NAMESPACE/ETCD FILE",
		Short:   "Save the data of a running Etcd; call it by local run, which reaches the Etcd",
		Example: "  local run -- snapshot save pergola-runtime garden/virtual-garden-etcd-main main.db",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := newEtcdTarget(args[0], args[1])
			if err != nil {
				return err
			}
			size, err := s.save(cmd.Context(), args[2])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "The data of Etcd %s is in %s: %d bytes.\n", args[1], args[2], size)
			return err
		},
	}
}

// save writes the snapshot as etcd sends it, with the checksum at its end. It writes the file
// atomically, and readable only by the user.
func (s *etcdTarget) save(ctx context.Context, path string) (size int64, err error) {
	object, err := s.dynamic.Resource(etcds.Resource).Namespace(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("reading Etcd %s/%s: %w", s.namespace, s.name, err)
	}
	client, err := etcds.NewClient(ctx, s.kube, object)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	limited, cancel := context.WithTimeout(ctx, memberListTimeout)
	_, err = client.MemberList(limited)
	cancel()
	if err != nil {
		return 0, fmt.Errorf("asking Etcd %s/%s for its members (is this called by local run?): %w", s.namespace, s.name, err)
	}
	data, err := client.Snapshot(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking Etcd %s/%s for a snapshot: %w", s.namespace, s.name, err)
	}
	defer data.Close()
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return 0, fmt.Errorf("writing the snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if size, err = io.Copy(file, data); err != nil {
		return 0, fmt.Errorf("reading the snapshot of Etcd %s/%s: %w", s.namespace, s.name, err)
	}
	for _, step := range []func() error{file.Sync, file.Close} {
		if err := step(); err != nil {
			return 0, fmt.Errorf("writing the snapshot: %w", err)
		}
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return 0, fmt.Errorf("writing the snapshot: %w", err)
	}
	return size, nil
}
