// SPDX-License-Identifier: Apache-2.0

// Command demo does in `make demo` what a person would do with kubectl, so that the demonstration
// does not need kubectl:
//
//	demo drift WATCH-LOG                       breaks two objects, waits for their repair
//	demo identity CONTEXT NAMESPACE/NAME FILE  writes a kubeconfig with a ServiceAccount token
//	demo reach CONTEXT NAMESPACE/NAME URL NAME FILE
//	                                           writes a kubeconfig, context NAME, for a control
//	                                           plane in CONTEXT, with its Secret, URL and proxy
//	demo namespace CONTEXT NAME                creates a Namespace, prints its API server
//	demo flag POD NAME VALUE                   waits until processes of pods POD… have a flag
//	demo write FILE NAMESPACE                  writes with kubeconfig FILE until interrupted
//	demo serve-git ADDRESS FOLDER              serves bare repositories to pods, read-only
//	demo secret CONTEXT NAMESPACE/NAME KEY=FILE…
//	demo ready URL                             waits until a probe answers
//	demo waiting WHAT COMMAND ARGUMENT…        runs a silent command, says what it waits for
//	demo remember CONTEXT FILE                 writes a Secret, and a kubeconfig to read it
//	demo recall CONTEXT FILE                   reads it with FILE, by the proxy of CONTEXT
//	demo authorities BEFORE AFTER              compares CAs of `pergola backup show -o json`
//	demo buckets CONTEXT                       prints the names of BackupBuckets
//	demo world CONTEXT FILE                    records digests of all objects of a cluster
//	demo world-as CONTEXT FILE                 waits until the objects are as recorded
//	demo confirm-deletion CONTEXT GARDEN       annotates a Garden that is to be deleted
//	demo runs CONTEXT NAMESPACE/NAME           exits with 1 unless a Deployment wants pods
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
)

const (
	pollTimeout  = 2 * time.Minute
	pollInterval = 200 * time.Millisecond
)

func main() {
	var ended *exec.ExitError
	switch err := run(context.Background()); {
	case errors.As(err, &ended):
		os.Exit(max(ended.ExitCode(), 1)) // the command has printed why
	case errors.Is(err, errNotRunning):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	usage := errors.New("usage: demo drift|identity|reach|namespace|flag|write|serve-git|secret|ready|waiting|remember|recall|authorities|buckets|world|world-as|confirm-deletion|runs ARGUMENTS: see the beginning of hack/demo/main.go")
	if len(os.Args) < 3 {
		return usage
	}
	args := os.Args[2:]
	switch command := os.Args[1]; {
	case command == "drift" && len(args) == 1:
		return demonstrateDrift(ctx, args[0])
	case command == "identity" && len(args) == 3:
		return writeIdentity(ctx, args[0], args[1], args[2])
	case command == "reach" && len(args) == 5:
		return writeControlPlaneKubeconfig(ctx, args[0], args[1], args[2], args[3], args[4])
	case command == "namespace" && len(args) == 2:
		return createNamespace(ctx, args[0], args[1])
	case command == "flag" && len(args) == 3:
		return waitForFlag(ctx, args[0], args[1], args[2])
	case command == "write" && len(args) == 2:
		return writeUntilInterrupted(ctx, args[0], args[1])
	case command == "serve-git" && len(args) == 2:
		return serveGit(ctx, args[0], args[1])
	case command == "secret" && len(args) > 2:
		return putSecret(ctx, args[0], args[1], args[2:])
	case command == "ready" && len(args) == 1:
		return waitUntilReady(ctx, args[0])
	case command == "waiting" && len(args) > 1:
		return runReportingWait(ctx, args[0], args[1:])
	case command == "remember" && len(args) == 2:
		return writeRememberedSecret(ctx, args[0], args[1])
	case command == "recall" && len(args) == 2:
		return readRememberedSecret(ctx, args[0], args[1])
	case command == "authorities" && len(args) == 2:
		return compareAuthorities(args...)
	case command == "buckets" && len(args) == 1:
		return printBuckets(ctx, args[0])
	case command == "world" && len(args) == 2:
		return recordObjects(ctx, args[0], args[1])
	case command == "world-as" && len(args) == 2:
		return waitForRecordedObjects(ctx, args[0], args[1])
	case command == "confirm-deletion" && len(args) == 2:
		return confirmDeletion(ctx, args[0], args[1])
	case command == "runs" && len(args) == 2:
		return requireRunning(ctx, args[0], args[1])
	}
	return usage
}

func demonstrateDrift(ctx context.Context, watchLog string) error {
	config, err := configOf("pergola-runtime")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	begun := reportWait(func() string { return "until pergola apply --watch has compared everything and watches" })
	err = poll(ctx, "pergola apply --watch", func() (bool, error) {
		log, err := os.ReadFile(watchLog)
		return strings.Contains(string(log), "Watching:"), err
	})
	begun()
	if err != nil {
		return err
	}
	if err := deleteDeployment(ctx, client); err != nil {
		return err
	}
	if err := editConfigMap(ctx, client); err != nil {
		return err
	}
	resources, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	defer reportWait(func() string { return "until all ManagedResources are healthy: repaired workloads start again" })()
	return poll(ctx, "all ManagedResources to be healthy", func() (bool, error) { return areAllHealthy(ctx, resources) })
}

// areAllHealthy reports whether every ManagedResource is healthy: repaired workloads have to start
// again.
func areAllHealthy(ctx context.Context, client dynamic.Interface) (bool, error) {
	list, err := client.Resource(resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, item := range list.Items {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, mr); err != nil {
			return false, err
		}
		c := condition.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
		if c == nil || c.Status != gardencorev1beta1.ConditionTrue {
			return false, nil
		}
	}
	return true, nil
}

func deleteDeployment(ctx context.Context, client kubernetes.Interface) error {
	deployments := client.AppsV1().Deployments("garden")
	before, err := deployments.Get(ctx, "vpa-updater", metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println("Deleting Deployment garden/vpa-updater, like this command:")
	fmt.Println("  kubectl --context pergola-runtime -n garden delete deployment vpa-updater")
	if err := deployments.Delete(ctx, before.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return waitForRepair(ctx, "Deployment garden/vpa-updater to come back", func() (bool, error) {
		now, err := deployments.Get(ctx, before.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && now.UID != before.UID, err
	})
}

func editConfigMap(ctx context.Context, client kubernetes.Interface) error {
	configMaps := client.CoreV1().ConfigMaps("istio-system")
	before, err := configMaps.Get(ctx, "istio", metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println("Editing ConfigMap istio-system/istio, like this command:")
	fmt.Println(`  kubectl --context pergola-runtime -n istio-system patch configmap istio --type merge -p '{"data":{"mesh":"edited by hand"}}'`)
	patch := []byte(`{"data":{"mesh":"edited by hand"}}`)
	if _, err := configMaps.Patch(ctx, before.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-patch"}); err != nil {
		return err
	}
	return waitForRepair(ctx, "ConfigMap istio-system/istio to be restored", func() (bool, error) {
		now, err := configMaps.Get(ctx, before.Name, metav1.GetOptions{})
		return err == nil && now.Data["mesh"] == before.Data["mesh"], err
	})
}

// waitForRepair polls until a repair is done, and prints how long it took.
func waitForRepair(ctx context.Context, what string, done func() (bool, error)) error {
	started := time.Now()
	if err := poll(ctx, what, done); err != nil {
		return err
	}
	fmt.Printf("Repaired after %s.\n", time.Since(started).Round(100*time.Millisecond))
	return nil
}

func poll(ctx context.Context, what string, done func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, pollTimeout, true, func(context.Context) (bool, error) { return done() })
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
