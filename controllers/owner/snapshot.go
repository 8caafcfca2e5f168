package owner

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
	"github.com/pergola-dev/pergola/controllers/rotation"
)

// annotationSnapshotted on the Deployment of an API server says that etcd was saved after all of it was written anew (upstream's).
const annotationSnapshotted = "credentials.gardener.cloud/etcd-snapshotted"

// snapshot has etcd saved once after all of it was written anew, and not again when the same reconciliation is gone on with.
func (r *run) snapshot(ctx context.Context) error {
	marked, err := r.owner.serving(ctx, annotationSnapshotted)
	if err != nil {
		return err
	}
	done := len(marked) > 0
	for _, is := range marked {
		done = done && is
	}
	if done {
		return nil
	}
	etcd := apply.Ref{APIVersion: "druid.gardener.cloud/v1alpha1", Kind: "Etcd", Namespace: r.owner.ControlPlane(), Name: kinds[r.owner.identity().Kind].etcd}
	backup, err := r.owner.backupOf(ctx, etcd)
	if err != nil || backup == nil {
		return err
	}
	r.tell("snapshot", "etcd is saved as it is encrypted now")
	if err := backup.Snapshot(ctx); err != nil {
		return fmt.Errorf("cluster %s: %s: %w", r.owner.Local.Name(), etcd, err)
	}
	return r.owner.mark(ctx, annotationSnapshotted, true)
}

// backupOf is the process that saves an etcd; nil where it has nowhere to save it to, or where no such process can be asked, as in clusters where
// etcd runs without it.
func (o *Owner) backupOf(ctx context.Context, ref apply.Ref) (*rotation.Backup, error) {
	etcd, err := o.Local.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) || apply.IsUnserved(err) {
		return nil, nil
	}
	if err != nil {
		return nil, o.Local.Explain(ref, "read", err)
	}
	spec, _, _ := unstructured.NestedMap(etcd.Object, "spec", "backup")
	store, _, _ := unstructured.NestedMap(spec, "store")
	port, _, _ := unstructured.NestedInt64(spec, "port")
	if len(store) == 0 || port == 0 {
		return nil, nil
	}
	service := apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: ref.Namespace, Name: ref.Name + "-client"}
	live, err := o.Local.GetLive(ctx, service)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, o.Local.Explain(service, "read", err)
	}
	if err != nil || !hasPort(live, port) {
		return nil, nil
	}
	config := o.Local.RESTConfig()
	out := &rotation.Backup{Address: net.JoinHostPort(service.Name+"."+service.Namespace+".svc", strconv.FormatInt(port, 10)), Proxy: config.Proxy, Dial: config.Dial}
	if _, secured, _ := unstructured.NestedMap(spec, "tls"); !secured {
		return out, nil
	}
	key, _, _ := unstructured.NestedString(spec, "tls", "tlsCASecretRef", "dataKey")
	if key == "" {
		key = "ca.crt"
	}
	authorities, err := o.secretData(ctx, spec, "tlsCASecretRef", ref.Namespace)
	if err != nil {
		return nil, err
	}
	out.CA = authorities[key]
	if len(out.CA) == 0 {
		return nil, fmt.Errorf("%s: the Secret of tlsCASecretRef has no key %s", ref, key)
	}
	client, err := o.secretData(ctx, spec, "clientTLSSecretRef", ref.Namespace)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(client["tls.crt"], client["tls.key"])
	if err != nil {
		return nil, errors.New(ref.String() + ": the certificate in the Secret of clientTLSSecretRef cannot be used") // the cause may quote it
	}
	out.Certificate = &pair
	return out, nil
}

// secretData reads the Secret that the TLS settings of a backup name.
func (o *Owner) secretData(ctx context.Context, backup map[string]any, field, namespace string) (map[string][]byte, error) {
	name, _, _ := unstructured.NestedString(backup, "tls", field, "name")
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, o.Local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, "read", err)
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
