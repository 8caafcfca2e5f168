// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
)

// FindBackup returns the process that backs up an etcd. It is nil without a backup store, or if no
// such process is reachable, as in clusters whose etcd runs without it.
func FindBackup(ctx context.Context, local *apply.Cluster, ref apply.Ref) (*Backup, error) {
	etcd, err := local.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) || apply.IsUnserved(err) {
		return nil, nil
	}
	if err != nil {
		return nil, local.Explain(ref, "read", err)
	}
	spec, _, _ := unstructured.NestedMap(etcd.Object, "spec", "backup")
	store, _, _ := unstructured.NestedMap(spec, "store")
	port, _, _ := unstructured.NestedInt64(spec, "port")
	if len(store) == 0 || port == 0 {
		return nil, nil
	}
	service := apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: ref.Namespace, Name: ref.Name + "-client"}
	live, err := local.GetLive(ctx, service)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, local.Explain(service, "read", err)
	}
	if err != nil || !hasPort(live, port) {
		return nil, nil
	}
	config := local.RESTConfig()
	out := &Backup{Address: net.JoinHostPort(service.Name+"."+service.Namespace+".svc", strconv.FormatInt(port, 10)), Proxy: config.Proxy, Dial: config.Dial}
	if _, secured, _ := unstructured.NestedMap(spec, "tls"); !secured {
		return out, nil
	}
	key, _, _ := unstructured.NestedString(spec, "tls", "tlsCASecretRef", "dataKey")
	if key == "" {
		key = "ca.crt"
	}
	authorities, err := secretData(ctx, local, spec, "tlsCASecretRef", ref.Namespace)
	if err != nil {
		return nil, err
	}
	out.CA = authorities[key]
	if len(out.CA) == 0 {
		return nil, fmt.Errorf("%s: the Secret of tlsCASecretRef has no key %s", ref, key)
	}
	client, err := secretData(ctx, local, spec, "clientTLSSecretRef", ref.Namespace)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(client["tls.crt"], client["tls.key"])
	if err != nil {
		// the cause may quote the certificate
		return nil, errors.New(ref.String() + ": the certificate in the Secret of clientTLSSecretRef cannot be used")
	}
	out.Certificate = &pair
	return out, nil
}

// secretData reads the Secret that the TLS settings of a backup name.
func secretData(ctx context.Context, local *apply.Cluster, backup map[string]any, field, namespace string) (map[string][]byte, error) {
	name, _, _ := unstructured.NestedString(backup, "tls", field, "name")
	client, err := kubernetes.NewForConfig(local.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", local.Name(), err)
	}
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, "read", err)
	}
	return secret.Data, nil
}

func hasPort(service *unstructured.Unstructured, number int64) bool {
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	for _, p := range ports {
		if fields, ok := p.(map[string]any); ok && fields["port"] == number {
			return true
		}
	}
	return false
}
