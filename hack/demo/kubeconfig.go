// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeControlPlaneKubeconfig writes a kubeconfig for the API server of a control plane, with the
// access in its Secret, for clients outside of the cluster.
func writeControlPlaneKubeconfig(ctx context.Context, contextName, secret, server, name, file string) error {
	client, err := clientOf(contextName)
	if err != nil {
		return err
	}
	namespace, secretName, _ := strings.Cut(secret, "/")
	s, err := client.CoreV1().Secrets(namespace).Get(ctx, secretName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the access of the control plane: %w", err)
	}
	theirs, err := clientcmd.Load(s.Data["kubeconfig"])
	if err != nil {
		return fmt.Errorf("the kubeconfig in Secret %s: %w", secret, err)
	}
	if err := clientcmdapi.MinifyConfig(theirs); err != nil {
		return fmt.Errorf("the kubeconfig in Secret %s: %w", secret, err)
	}
	near, err := contextKubeconfig(contextName)
	if err != nil {
		return err
	}
	out := clientcmdapi.NewConfig()
	out.CurrentContext, out.Contexts[name] = name, &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	for _, cluster := range theirs.Clusters {
		cluster.Server = server
		for _, through := range near.Clusters {
			cluster.ProxyURL = through.ProxyURL
		}
		out.Clusters[name] = cluster
	}
	for _, user := range theirs.AuthInfos {
		out.AuthInfos[name] = user
	}
	return clientcmd.WriteToFile(*out, file)
}

// createNamespace creates a Namespace, which may exist from the last demonstration.
func createNamespace(ctx context.Context, contextName, name string) error {
	client, err := clientOf(contextName)
	if err != nil {
		return err
	}
	running, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	fmt.Printf("Creating Namespace %s, like this command:\n  kubectl --context %s create namespace %s\n", name, contextName, name)
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	made, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("namespace/%s is %s, says the API server of %s, %s\n", made.Name, made.Status.Phase, contextName, describeVersion(running))
	return nil
}

// describeVersion describes the version of an API server: the emulated version, which the landscape
// declares, and the version of the executable.
func describeVersion(v *version.Info) string {
	if v.EmulationMinor == "" || v.EmulationMinor == v.Minor {
		return "Kubernetes " + v.GitVersion
	}
	return fmt.Sprintf("Kubernetes %s.%s, emulated by %s, the one executable that this machine has", v.EmulationMajor, v.EmulationMinor, v.GitVersion)
}
