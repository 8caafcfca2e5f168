// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// keyKubeconfig is the key of a kubeconfig in a Secret (upstream's constant of the core API).
const keyKubeconfig = "kubeconfig"

// checkKubeconfig rejects a user's kubeconfig that makes the Shoot's API server run programs or
// read files, because that server runs on the seed. (gardener: pkg/client/kubernetes,
// ValidateConfig, used by upstream's admission.)
func checkKubeconfig(r crosscheck.ConfigReference, live *unstructured.Unstructured) error {
	if r.Kind != "Secret" || !slices.Contains(r.MountedKeys(), keyKubeconfig) {
		return nil
	}
	text, _, _ := unstructured.NestedString(live.Object, "data", keyKubeconfig)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil // an API server stores only valid base64
	}
	return CheckKubeconfig(raw)
}

// CheckKubeconfig rejects a kubeconfig that makes its client run programs or read files. The caller
// prefixes the error with the object; the error quotes no content.
func CheckKubeconfig(raw []byte) error {
	config, err := clientcmd.Load(raw)
	if err != nil {
		// the cause may quote the content
		return fmt.Errorf("has data[%s] that is not a kubeconfig", keyKubeconfig)
	}
	for _, user := range config.AuthInfos {
		if err := checkUser(user); err != nil {
			return fmt.Errorf("has data[%s] that cannot be used: %w", keyKubeconfig, err)
		}
	}
	for _, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf("has data[%s] that cannot be used: it refers to a file (clusters[].cluster.certificate-authority): put its content into certificate-authority-data", keyKubeconfig)
		}
	}
	return nil
}

func checkUser(user *api.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return errors.New("it runs a program (users[].user.exec): put a token or a certificate into it")
	case user.AuthProvider != nil:
		return errors.New("it runs code of a provider (users[].user.auth-provider): put a token or a certificate into it")
	case user.TokenFile != "", user.ClientCertificate != "", user.ClientKey != "":
		return errors.New("it refers to files (users[].user.tokenFile, client-certificate, client-key): put their content into token, client-certificate-data, client-key-data")
	case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0:
		return errors.New("it impersonates another user (users[].user.as…), which is not supported")
	}
	return nil
}
