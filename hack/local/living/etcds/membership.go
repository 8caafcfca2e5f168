// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// etcdTimeout limits connecting to a running etcd, and one step of its growth.
const etcdTimeout = 10 * time.Second

// peer is a member as a running etcd reports it. A member that has never started has no name.
type peer struct {
	ID      uint64
	Name    string
	URLs    []string
	Learner bool
}

// membership reads and changes the members of a running etcd.
type membership interface {
	List(ctx context.Context) ([]peer, error)
	Update(ctx context.Context, id uint64, url string) error
	AddLearner(ctx context.Context, url string) error
	Promote(ctx context.Context, id uint64) error
	Close() error
}

// connection implements membership with etcd's own client.
type connection struct{ client *clientv3.Client }

// dial connects to an etcd. secured is nil without TLS. The certificate must match the name in the
// endpoint, whatever the configuration says: google.golang.org/grpc takes it from the address of a
// connection. So the address is passed separately.
func dial(ctx context.Context, endpoint, address string, secured *tls.Config) (membership, error) {
	client, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{endpoint}, TLS: secured, DialTimeout: etcdTimeout, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %s: %w", endpoint, err)
	}
	return &connection{client}, nil
}

func (c *connection) List(ctx context.Context) ([]peer, error) {
	answer, err := c.client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing members: %w", err)
	}
	var peers []peer
	for _, m := range answer.Members {
		peers = append(peers, peer{ID: m.ID, Name: m.Name, URLs: m.PeerURLs, Learner: m.IsLearner})
	}
	return peers, nil
}

func (c *connection) Update(ctx context.Context, id uint64, url string) error {
	if _, err := c.client.MemberUpdate(ctx, id, []string{url}); err != nil {
		return fmt.Errorf("giving member %x the address %s: %w", id, url, err)
	}
	return nil
}

func (c *connection) AddLearner(ctx context.Context, url string) error {
	if _, err := c.client.MemberAddAsLearner(ctx, []string{url}); err != nil {
		return fmt.Errorf("adding member %s: %w", url, err)
	}
	return nil
}

func (c *connection) Promote(ctx context.Context, id uint64) error {
	if _, err := c.client.MemberPromote(ctx, id); err != nil {
		return fmt.Errorf("making learner %x a voter: %w", id, err)
	}
	return nil
}

func (c *connection) Close() error { return c.client.Close() }

// connect connects to an Etcd by its client Service, with the certificate of its backup process.
func connect(ctx context.Context, kube kubernetes.Interface, e *etcd) (membership, error) {
	service, err := kube.CoreV1().Services(e.Namespace).Get(ctx, e.clientService(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", e.clientService(), err)
	}
	port := strconv.Itoa(int(e.Spec.Etcd.ClientPort))
	address, name := net.JoinHostPort(service.Spec.ClusterIP, port), net.JoinHostPort(e.clientHost(), port)
	refs := e.Spec.Etcd.ClientURLTLS
	if refs == nil {
		return dial(ctx, "http://"+name, address, nil)
	}
	secured, err := clientTLS(ctx, kube, e, refs)
	if err != nil {
		return nil, err
	}
	return dial(ctx, "https://"+name, address, secured)
}

// clientHost returns the name of the client Service, which its certificate contains.
func (e *etcd) clientHost() string { return fmt.Sprintf("%s.%s.svc", e.clientService(), e.Namespace) }

func clientTLS(ctx context.Context, kube kubernetes.Interface, e *etcd, refs *tlsRefs) (*tls.Config, error) {
	secret := func(name string) (*corev1.Secret, error) {
		s, err := kube.CoreV1().Secrets(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", name, err)
		}
		return s, nil
	}
	if refs.Client.Name == "" {
		return nil, errors.New("the Etcd names no Secret with a client certificate")
	}
	ca, err := secret(refs.CA.Name)
	if err != nil {
		return nil, err
	}
	client, err := secret(refs.Client.Name)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(client.Data[corev1.TLSCertKey], client.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate in Secret %s: %w", client.Name, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.Data[refs.caKey()]) {
		return nil, fmt.Errorf("reading the authority in Secret %s: no certificate under the key %s", ca.Name, refs.caKey())
	}
	return &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		ServerName: e.clientHost(),
	}, nil
}
