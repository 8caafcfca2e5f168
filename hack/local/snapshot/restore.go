// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pergola-dev/pergola/hack/local/living/etcds"
)

// restoreOptions describes the Etcd that gets the data.
type restoreOptions struct {
	claim, capacity string
	members         int
	peerTLS         bool
}

func restoreCommand() *cobra.Command {
	var r restoreOptions
	command := &cobra.Command{
		Use:   "restore CONTEXT NAMESPACE/ETCD FILE",
		Short: "Put saved data into the volumes of an Etcd that does not exist yet",
		Long: `Creates the claims of an Etcd's members, waits for their volumes, and puts the data of a snapshot there.
The Etcd starts with it when it is applied. Fails if the Etcd exists or a volume has data.`,
		Example: "  snapshot restore pergola-runtime garden/virtual-garden-etcd-main main.db",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := newEtcdTarget(args[0], args[1])
			if err != nil {
				return err
			}
			if err := s.restore(cmd.Context(), args[2], r); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is in the volumes of Etcd %s, which starts with it.\n", args[2], args[1])
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&r.claim, "claim", "", "template of the claims, spec.volumeClaimTemplate of the Etcd (default: as in Gardener)")
	flags.StringVar(&r.capacity, "capacity", "25Gi", "capacity of each volume")
	flags.IntVar(&r.members, "members", 1, "how many members the Etcd has")
	flags.BoolVar(&r.peerTLS, "peer-tls", false, "members speak TLS with each other")
	return command
}

// claimTemplate returns Gardener's claim name: components/kubernetes/etcd.cue.
func claimTemplate(etcd string) string {
	if prefix, main := strings.CutSuffix(etcd, "etcd-main"); main {
		return "main-" + prefix + "etcd"
	}
	return etcd
}

func (s *etcdTarget) restore(ctx context.Context, file string, r restoreOptions) error {
	if r.members < 1 {
		return fmt.Errorf("--members %d: an Etcd has one or more", r.members)
	}
	capacity, err := resource.ParseQuantity(r.capacity)
	if err != nil {
		return fmt.Errorf("--capacity %s: %w", r.capacity, err)
	}
	switch _, err := s.dynamic.Resource(etcds.Resource).Namespace(s.namespace).Get(ctx, s.name, metav1.GetOptions{}); {
	case err == nil:
		return fmt.Errorf("the Etcd %s/%s already exists: restore its data before it is created", s.namespace, s.name)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("looking for Etcd %s/%s: %w", s.namespace, s.name, err)
	}
	if r.claim == "" {
		r.claim = claimTemplate(s.name)
	}
	scheme := "http"
	if r.peerTLS {
		scheme = "https"
	}
	peers, names := map[string]string{}, []string{}
	for i := range r.members {
		name := fmt.Sprintf("%s-%d", s.name, i)
		names = append(names, name)
		peers[name] = fmt.Sprintf("%s://%s.%s-peer.%s.svc:2380", scheme, name, s.name, s.namespace)
	}
	if err := s.ensureNamespace(ctx); err != nil {
		return err
	}
	for _, name := range names {
		folder, err := s.ensureVolume(ctx, r.claim+"-"+name, capacity)
		if err != nil {
			return err
		}
		if err := restoreMember(file, filepath.Join(folder, "new.etcd"), name, peers); err != nil {
			return err
		}
	}
	return nil
}

func (s *etcdTarget) ensureNamespace(ctx context.Context) error {
	_, err := s.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", s.namespace, err)
	}
	return nil
}

// ensureVolume returns the folder of a claim and creates the claim if it does not exist.
func (s *etcdTarget) ensureVolume(ctx context.Context, name string, capacity resource.Quantity) (string, error) {
	claims := s.kube.CoreV1().PersistentVolumeClaims(s.namespace)
	_, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: capacity}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating claim %s/%s: %w", s.namespace, name, err)
	}
	var folder string
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		claim, err := claims.Get(ctx, name, metav1.GetOptions{})
		if err != nil || claim.Status.Phase != corev1.ClaimBound {
			return false, err
		}
		volume, err := s.kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if volume.Spec.HostPath == nil {
			return false, errors.New("its volume is not a folder: this cluster has no living pods")
		}
		folder = volume.Spec.HostPath.Path
		return true, nil
	})
	if err != nil {
		return "", fmt.Errorf("waiting for the volume of claim %s/%s: %w", s.namespace, name, err)
	}
	return folder, nil
}
