// SPDX-License-Identifier: Apache-2.0

package gardenletdeployer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pergola-dev/pergola/controllers/access"
)

const (
	// tokenLifetime is the lifetime of a bootstrap token (upstream's); minTokenLifetime is the
	// remaining lifetime below which it is replaced.
	tokenLifetime    = 24 * time.Hour
	minTokenLifetime = 20 * time.Hour
	tokenAlphabet    = "abcdefghijklmnopqrstuvwxyz0123456789"
)

// bootstrapKubeconfig returns a kubeconfig that only allows a gardenlet to request a certificate.
func (d *Deployer) bootstrapKubeconfig(ctx context.Context, v *chartValues, name string, uid types.UID) ([]byte, error) {
	server, authorities := v.gardenAddress()
	if server == "" {
		var err error
		if server, err = d.Address(ctx); err != nil {
			return nil, fmt.Errorf("reading the address of the virtual garden: %w", err)
		}
	}
	var ca []byte
	switch authorities {
	case "none", "null": // the system's trusted authorities
	case "":
		var err error
		if ca, err = access.CABundle(ctx, d.virtual.RESTConfig()); err != nil {
			return nil, fmt.Errorf("reading the CAs of the virtual garden: %w", err)
		}
	default:
		decoded, err := base64.StdEncoding.DecodeString(authorities)
		if err != nil {
			return nil, withReason(reasonConfig, fmt.Errorf("spec.config.gardenClientConnection.gardenClusterCACert is not base64"))
		}
		ca = decoded
	}
	token, err := d.bootstrapToken(ctx, name, uid)
	if err != nil {
		return nil, fmt.Errorf("creating a bootstrap token in the virtual garden: %w", err)
	}
	const entry = "gardenlet-bootstrap"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{entry: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{entry: {Token: token}},
		Contexts:  map[string]*clientcmdapi.Context{entry: {Cluster: entry, AuthInfo: entry}}, CurrentContext: entry,
	})
}

// bootstrapToken returns a bootstrap token of a Gardenlet; the existing one while it is valid long
// enough.
func (d *Deployer) bootstrapToken(ctx context.Context, name string, uid types.UID) (string, error) {
	client, err := kubernetes.NewForConfig(d.virtual.RESTConfig())
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(uid))
	id := hex.EncodeToString(sum[:])[:6]
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	had, err := secrets.Get(ctx, "bootstrap-token-"+id, metav1.GetOptions{})
	if err == nil {
		until, bad := time.Parse(time.RFC3339, string(had.Data["expiration"]))
		if secret := string(had.Data["token-secret"]); bad == nil && len(secret) == 16 && until.Sub(d.Clock.Now()) > minTokenLifetime {
			return id + "." + secret, nil
		}
	} else if !apierrors.IsNotFound(err) {
		return "", err
	}
	secret, err := randomString(16)
	if err != nil {
		return "", err
	}
	wanted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: metav1.NamespaceSystem}, Type: corev1.SecretTypeBootstrapToken, Data: map[string][]byte{
		"token-id": []byte(id), "token-secret": []byte(secret), "expiration": []byte(d.Clock.Now().Add(tokenLifetime).UTC().Format(time.RFC3339)),
		"description":                    []byte("A bootstrap token for the Gardenlet " + Namespace + "/" + name + "."),
		"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"),
	}}
	options := metav1.CreateOptions{FieldManager: FieldManager}
	if apierrors.IsNotFound(err) || had == nil || had.UID == "" {
		_, err = secrets.Create(ctx, wanted, options)
	} else {
		wanted.ResourceVersion = had.ResourceVersion
		_, err = secrets.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: FieldManager})
	}
	return id + "." + secret, err
}

func randomString(n int) (string, error) {
	var out strings.Builder
	for range n {
		i, err := rand.Int(rand.Reader, big.NewInt(int64(len(tokenAlphabet))))
		if err != nil {
			return "", err
		}
		out.WriteByte(tokenAlphabet[i.Int64()])
	}
	return out.String(), nil
}
