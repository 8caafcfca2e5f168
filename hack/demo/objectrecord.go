// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/hack/clusterobjects"
)

// recordObjects writes digests of all objects of a cluster into a file.
func recordObjects(ctx context.Context, contextName, file string) error {
	config, err := configOf(contextName)
	if err != nil {
		return err
	}
	now, err := clusterobjects.Read(ctx, config)
	if err != nil {
		return err
	}
	data, err := json.Marshal(now.Digests())
	if err != nil {
		return err
	}
	fmt.Printf("%d objects.\n", len(now))
	return os.WriteFile(file, data, 0o600)
}

// waitForRecordedObjects waits until all objects of a cluster are as recorded, and reports
// differences. Kubernetes deletes derived objects with a delay.
func waitForRecordedObjects(ctx context.Context, contextName, file string) error {
	config, err := configOf(contextName)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before := clusterobjects.Digests{}
	if err := json.Unmarshal(data, &before); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var other []string
	err = poll(ctx, "the cluster to return to its previous state", func() (bool, error) {
		now, err := clusterobjects.Read(ctx, config)
		if err != nil {
			return false, err
		}
		other = now.DifferencesFrom(before)
		return len(other) == 0, nil
	})
	if err != nil {
		return errors.Join(err, errors.New(strings.Join(other, "\n")))
	}
	fmt.Printf("All %d objects are unchanged, and there are no others (except Events, Leases, retained volume claims and Pergola's own objects).\n", len(before))
	return nil
}

// confirmDeletion annotates a Garden as a person does.
func confirmDeletion(ctx context.Context, contextName, name string) error {
	config, err := configOf(contextName)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	fmt.Printf("like this command: kubectl --context %s annotate garden %s %s=true\n", contextName, name, owner.AnnotationConfirmDeletion)
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, owner.AnnotationConfirmDeletion)
	_, err = client.Resource(operatorv1alpha1.SchemeGroupVersion.WithResource("gardens")).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	return err
}
