// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/pergola-dev/pergola/api/extensions/v1alpha1"
	"github.com/pergola-dev/pergola/commands/recovery"
)

// Names of the objects that remember creates and recall reads.
const (
	rememberedNamespace = "from-before"
	rememberedSecret    = "kept"
	rememberedAccount   = "somebody"
)

// rememberedContent is the content to compare with, which is stored beside the kubeconfig.
type rememberedContent struct {
	Value []byte `json:"value"`
	UID   string `json:"uid"`
}

// writeRememberedSecret writes a Secret, a ServiceAccount that may read it, and a kubeconfig with
// two contexts: the certificate of the current context, and a token.
func writeRememberedSecret(ctx context.Context, contextName, file string) error {
	client, err := clientOf(contextName)
	if err != nil {
		return err
	}
	value := make([]byte, 16)
	if _, err := rand.Read(value); err != nil {
		return err
	}
	made, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rememberedNamespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: rememberedNamespace, Name: rememberedAccount}
	for _, create := range []func() error{
		func() error {
			_, err := client.CoreV1().Secrets(rememberedNamespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: rememberedSecret}, Data: map[string][]byte{"value": value}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.CoreV1().ServiceAccounts(rememberedNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.RbacV1().Roles(rememberedNamespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.RbacV1().RoleBindings(rememberedNamespace).Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: rememberedAccount},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rememberedNamespace, Name: rememberedAccount}},
			}, metav1.CreateOptions{})
			return err
		},
	} {
		if err := create(); err != nil {
			return err
		}
	}
	token, err := client.CoreV1().ServiceAccounts(rememberedNamespace).CreateToken(ctx, rememberedAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime / time.Second))},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config, err := contextKubeconfig(contextName)
	if err != nil {
		return err
	}
	certificate := config.Contexts[contextName]
	config.AuthInfos["token"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["token"] = &clientcmdapi.Context{Cluster: certificate.Cluster, AuthInfo: "token"}
	config.Contexts["certificate"] = certificate
	delete(config.Contexts, contextName)
	config.CurrentContext = "certificate"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return err
	}
	text, err := json.Marshal(rememberedContent{value, string(made.UID)})
	if err != nil {
		return err
	}
	fmt.Printf("Secret %s/%s is written in %s; a certificate and a token to read it with are in a kubeconfig.\n", rememberedNamespace, rememberedSecret, contextName)
	return os.WriteFile(file+".kept", text, 0o600)
}

// readRememberedSecret reads the Secret with the kubeconfig of remember, by the proxy of the
// current context.
func readRememberedSecret(ctx context.Context, contextName, file string) error {
	near, err := contextKubeconfig(contextName)
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		for _, through := range near.Clusters {
			cluster.ProxyURL = through.ProxyURL
		}
	}
	text, err := os.ReadFile(file + ".kept")
	if err != nil {
		return err
	}
	var before rememberedContent
	if err := json.Unmarshal(text, &before); err != nil {
		return err
	}
	for _, way := range slices.Sorted(maps.Keys(config.Contexts)) {
		reached, err := clientcmd.NewNonInteractiveClientConfig(*config, way, nil, nil).ClientConfig()
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(reached)
		if err != nil {
			return err
		}
		secret, err := client.CoreV1().Secrets(rememberedNamespace).Get(ctx, rememberedSecret, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("with the previous %s: %w", way, err)
		}
		if !bytes.Equal(secret.Data["value"], before.Value) {
			return fmt.Errorf("with the previous %s: Secret %s/%s has another value", way, rememberedNamespace, rememberedSecret)
		}
		fmt.Printf("%s accepts the previous %s, shows a certificate of the previous CA, and its Secret %s/%s has the previous value.\n", reached.Host, way, rememberedNamespace, rememberedSecret)
		if way != "certificate" {
			continue
		}
		namespace, err := client.CoreV1().Namespaces().Get(ctx, rememberedNamespace, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if string(namespace.UID) != before.UID {
			return fmt.Errorf("namespace %s was recreated", rememberedNamespace)
		}
	}
	return nil
}

// compareAuthorities compares the CAs of two backups, as pergola backup show prints them.
func compareAuthorities(files ...string) error {
	found := make([]map[string]string, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var m recovery.Manifest
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		found[i] = map[string]string{}
		for _, e := range m.Entries {
			if e.Certificate != nil && e.Origin == recovery.OriginGenerated && (e.Name == "ca" || strings.HasPrefix(e.Name, "ca-")) {
				found[i][e.String()] = e.Certificate.SHA256
			}
		}
	}
	var problems []error
	for name, before := range found[0] {
		if after := found[1][name]; after != before {
			problems = append(problems, fmt.Errorf("%s: the fingerprint was %s, and is %q", name, before, after))
		}
	}
	if len(found[0]) == 0 {
		problems = append(problems, errors.New("there are no CAs to compare"))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(found[0])) {
		fmt.Printf("%s  %s\n", found[0][name][:16], name)
	}
	fmt.Printf("All %d CAs are unchanged.\n", len(found[0]))
	return nil
}

// printBuckets prints the names of the BackupBuckets of a cluster.
func printBuckets(ctx context.Context, contextName string) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: contextName}).ClientConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	list, err := client.Resource(extensionsv1alpha1.SchemeGroupVersion.WithResource("backupbuckets")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, bucket := range list.Items {
		fmt.Println(bucket.GetName())
	}
	return nil
}
