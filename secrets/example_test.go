// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/secrets"
)

// ExampleManager_GenerateAll generates a CA and a server certificate that it signs. A second call
// finds both in the cluster.
func ExampleManager_GenerateAll() {
	config, err := clientcmd.BuildConfigFromFlags("", "kubeconfig")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	manager := secrets.New(secrets.NewStore(client), "garden", "example", clock.RealClock{})
	refs, err := manager.GenerateAll(context.Background(), []secrets.Config{
		{Name: "ca", Kind: secrets.KindCA},
		{Name: "server", Kind: secrets.KindCertificate, CertType: secrets.CertServer, SigningCA: "ca", DNSNames: []string{"example.garden.svc"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(refs[0].Name)
}
