package references

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/pergola-dev/pergola/schemas/across"
)

// keyKubeconfig is where a Secret has a kubeconfig (upstream's constant of the core API).
const keyKubeconfig = "kubeconfig"

// checkKubeconfig refuses a kubeconfig of a Shoot's user that would have its API server run
// programs or read files: that runs on the seed, and belongs to somebody else. (gardener:
// pkg/client/kubernetes, ValidateConfig, by which upstream's admission refuses them.)
func checkKubeconfig(r across.Reference, live *unstructured.Unstructured) error {
	if r.Kind != "Secret" || !slices.Contains(r.Files(), keyKubeconfig) {
		return nil
	}
	text, _, _ := unstructured.NestedString(live.Object, "data", keyKubeconfig)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil // an API server stores nothing else
	}
	return CheckKubeconfig(raw)
}

// CheckKubeconfig refuses a kubeconfig by which whoever uses it would run programs or read files.
// The error goes on from what has it, and quotes nothing of it.
func CheckKubeconfig(raw []byte) error {
	config, err := clientcmd.Load(raw)
	if err != nil {
		// the cause may quote it
		return fmt.Errorf("has data[%s] that is no kubeconfig", keyKubeconfig)
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
		return errors.New("it acts as somebody else (users[].user.as…), which is not supported")
	}
	return nil
}
