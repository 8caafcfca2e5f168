// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// tokenLifetime is the lifetime of a token of the demonstration: the processes end with the
// clusters.
const tokenLifetime = 24 * time.Hour

// clientOf returns a client for the cluster of a context.
func clientOf(contextName string) (kubernetes.Interface, error) {
	config, err := configOf(contextName)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

func configOf(contextName string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: contextName}).ClientConfig()
}

// contextKubeconfig returns the kubeconfig of a single context, with embedded certificates.
func contextKubeconfig(contextName string) (*clientcmdapi.Config, error) {
	all, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return nil, err
	}
	if all.Contexts[contextName] == nil {
		return nil, fmt.Errorf("there is no context %s", contextName)
	}
	all.CurrentContext = contextName
	if err := clientcmdapi.MinifyConfig(all); err != nil {
		return nil, err
	}
	return all, clientcmdapi.FlattenConfig(all)
}

// writeIdentity writes a kubeconfig with exactly the rights of a ServiceAccount.
func writeIdentity(ctx context.Context, contextName, account, file string) error {
	namespace, name, _ := strings.Cut(account, "/")
	client, err := clientOf(contextName)
	if err != nil {
		return err
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime / time.Second))},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("a token of ServiceAccount %s: %w", account, err)
	}
	config, err := contextKubeconfig(contextName)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.ProxyURL = "" // the process needs no proxy
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	return clientcmd.WriteToFile(*config, file)
}

// putSecret creates a Secret, or replaces its data.
func putSecret(ctx context.Context, contextName, key string, entries []string) error {
	namespace, name, _ := strings.Cut(key, "/")
	client, err := clientOf(contextName)
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	for _, entry := range entries {
		field, file, _ := strings.Cut(entry, "=")
		if data[field], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	_, err = client.CoreV1().Secrets(namespace).Create(ctx, s, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.CoreV1().Secrets(namespace).Update(ctx, s, metav1.UpdateOptions{})
	}
	return err
}

// errNotRunning is the answer "no" of runs.
var errNotRunning = errors.New("no")

// requireRunning returns errNotRunning if a Deployment does not exist or wants no pods.
func requireRunning(ctx context.Context, contextName, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	client, err := clientOf(contextName)
	if err != nil {
		return err
	}
	d, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && ptr.Deref(d.Spec.Replicas, 1) == 0 {
		return errNotRunning
	}
	return err
}

// waitUntilReady waits until a probe answers that all is well.
func waitUntilReady(ctx context.Context, url string) error {
	client := &http.Client{Timeout: 5 * time.Second}
	return poll(ctx, url, func() (bool, error) {
		answer, err := client.Get(url)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK, nil
	})
}
