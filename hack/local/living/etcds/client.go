// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// NewClient connects to a running Etcd like its own backup process. It works where Services have
// their addresses.
func NewClient(ctx context.Context, kube kubernetes.Interface, object *unstructured.Unstructured) (*clientv3.Client, error) {
	e, err := parseEtcd(object)
	if err != nil {
		return nil, err
	}
	found, err := connect(ctx, kube, e)
	if err != nil {
		return nil, err
	}
	c, ok := found.(*connection)
	if !ok {
		return nil, fmt.Errorf("%T is not a connection", found)
	}
	return c.client, nil
}
