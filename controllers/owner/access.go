// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/accesstokens"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// generatedAccess is access to an owner's API server that the secrets manager has generated.
type generatedAccess struct {
	// secretName is the name of the generated Secret; it is empty if none was requested.
	secretName string
	// previousCA is the previous client CA in PEM, while the API server trusts only certificates of
	// that CA.
	previousCA []byte
}

// recordAccess records that the control plane of an owner generates access to its API server.
func (o *ownerSession) recordAccess(made generatedAccess, now time.Time) {
	o.updateState(func(s *State) { s.access, s.accessCheckedAt = made, now })
}

// hasAPIServer reports whether the owner has an API server to connect to. A Shoot whose components
// generate no access has none.
func (o *ownerSession) hasAPIServer() bool {
	return o.currentState().access.secretName != "" || o.renderOwner().Kind == Garden
}

// publishAccess publishes the generated access to the API server of an owner under its fixed name.
// While a new client CA is introduced, the old access stays: API servers that were not restarted
// yet trust no other. publishRotatedAccess publishes the new access later.
func (r *run) publishAccess(ctx context.Context, manager *secrets.Manager, result render.Result) error {
	generated, asked := manager.Get(access.SecretName)
	if target := r.owner.Target; !asked || r.owner.Input.Owner.Kind == Garden && target != nil && !access.IsLazyConfig(target.RESTConfig()) {
		return nil // a Secret of this name may belong to someone who provides the access
	}
	configs, err := secretRequests(r.owner, result)
	if err != nil {
		return err
	}
	made := generatedAccess{secretName: generated.Name}
	if old, kept := manager.GetOld(accessCARequest(configs)); kept {
		made.previousCA = old.Data[keyCACertificate].Reveal() // a certificate is public
	}
	r.owner.recordAccess(made, r.reconciler.Clock.Now())
	_, err = r.owner.publishAccess(ctx, made)
	return err
}

// publishRotatedAccess publishes new access once everything applied is rolled out and no API server
// trusts only the old CA.
func (r *run) publishRotatedAccess(ctx context.Context) error {
	made := r.owner.currentState().access
	if made.secretName == "" || made.previousCA == nil {
		return nil
	}
	if r.owner.currentState().rotation.IsUnderWay() {
		if err := r.waitForOldPods(ctx); err != nil {
			return err
		}
	}
	made.previousCA = nil
	r.owner.recordAccess(made, r.reconciler.Clock.Now())
	_, err := r.owner.publishAccess(ctx, made)
	return err
}

// keyCACertificate is the key of the certificate in the Secret of a CA.
const keyCACertificate = "ca.crt"

// accessCARequest returns the request of the CA that signs the client certificate of the access, or
// "" if there is none.
func accessCARequest(configs []secrets.Config) string {
	byName := make(map[string]secrets.Config, len(configs))
	for _, c := range configs {
		byName[c.Name] = c
	}
	return byName[byName[access.SecretName].ClientCertificate].SigningCA
}

// publishAccess publishes generated access under its fixed name; written reports whether the Secret
// had to change.
func (o *ownerSession) publishAccess(ctx context.Context, made generatedAccess) (written bool, err error) {
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return false, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	namespace := o.ControlPlane()
	ref := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: access.SecretName}
	written, err = access.Publish(ctx, client, namespace, made.secretName, made.previousCA)
	return written, o.Local.Explain(ref, "write the access to the API server of "+o.String()+" to", err)
}

// accessCheckInterval is the time between checks of the access to an API server that answers.
const accessCheckInterval = 5 * time.Minute

// isAccessCheckDue reports whether the access has to be checked, and records the check.
func (o *ownerSession) isAccessCheckDue(now time.Time) (due bool) {
	o.updateState(func(s *State) {
		if due = now.Sub(s.accessCheckedAt) >= accessCheckInterval; due {
			s.accessCheckedAt = now
		}
	})
	return due
}

// restoreAccess restores the access to the API server of an owner if someone has deleted or changed
// it, and reports whether it did. Drift detection does not cover the access, because it is in no
// bundle.
func (o *ownerSession) restoreAccess(ctx context.Context) bool {
	made := o.currentState().access
	if made.secretName == "" {
		return false
	}
	// An error is not reported: the caller already reports that the access is missing.
	written, err := o.publishAccess(ctx, made)
	return err == nil && written
}

// startTokenRenewal starts the renewal of the control plane's tokens, which may not exist yet.
func (r *run) startTokenRenewal() {
	o := r.owner
	manager, has := resourceManagerNames[o.Input.Owner.Kind]
	if !has || o.Target == nil || !o.hasAPIServer() {
		return
	}
	r.reconciler.Tokens.Start(accesstokens.ControlPlane{
		Namespace: o.Input.Owner.ControlPlaneNamespace, Local: o.Local.RESTConfig(), Target: o.Target.RESTConfig(), ResourceManager: manager,
	})
}

// resourceManagerNames are the Deployments of gardener-resource-manager for a control plane, by the
// kind of its owner. The Deployment without a prefix in namespace garden serves the runtime
// cluster.
var resourceManagerNames = map[string]string{Garden: "virtual-garden-gardener-resource-manager", Shoot: "gardener-resource-manager"}

// ConnectShoot connects a Shoot to its API server, with the access that is published with its
// control plane. outside means that Service names of the seed do not resolve here, so the Shoot's
// own domain is used. fence may block requests; nil blocks none.
func ConnectShoot(o *Owner, outside bool, fence transport.WrapperFunc, options apply.ClusterOptions) error {
	config, err := o.shootAccess(outside, options.Clock)
	if err != nil {
		return err
	}
	if fence != nil {
		config.Wrap(fence)
	}
	o.Target, err = conventions.NewCluster(render.ShootCluster(o.Input.Owner), config, options)
	return err
}

// shootAccess returns the access to the API server of a Shoot, which is read when it is needed.
func (o *Owner) shootAccess(outside bool, clk clock.PassiveClock) (*rest.Config, error) {
	read, err := access.NewSecretReader(o.Local.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	// The input, which may come later, has the namespace of the control plane.
	source := access.ShootSource(o.Input.Owner.Namespace+"/"+o.Input.Owner.Name, o.Input.Owner.ControlPlaneNamespace, read, clk)
	if outside {
		source.Proxy = o.Local.RESTConfig().Proxy
		source.ExternalURL = func(context.Context) (string, error) { return o.externalURL() }
	}
	return access.LazyConfig(source), nil
}

// ShootAccess returns the access to the API server of a Shoot from outside its seed. The error
// explains why no pod serves the API server.
func ShootAccess(ctx context.Context, o Owner) (*rest.Config, error) {
	at := o.newSession(State{})
	switch served, err := at.isServed(ctx); {
	case err != nil:
		return nil, err
	case !served:
		return nil, errors.New(at.unservedReason())
	}
	return at.shootAccess(true, nil)
}

// externalURL returns the URL of a Shoot at its own domain.
func (o *Owner) externalURL() (string, error) {
	domain, _, err := unstructured.NestedString(o.Input.Objects[Shoot], "spec", "dns", "domain")
	if err != nil || domain == "" {
		return "", fmt.Errorf("%s has no domain for access from outside its seed", o)
	}
	return "https://api." + domain, nil
}

// secretGenericKubeconfig is the request for the Secret with which pods beside the virtual garden
// connect to it.
const secretGenericKubeconfig = "generic-token-kubeconfig"

// annotateGenericKubeconfig writes the name of the Secret with the generic kubeconfig to an
// annotation of a Garden. Extensions of the garden read it there, as they read that of a Shoot from
// its Cluster. The name changes with each rotation.
func (r *run) annotateGenericKubeconfig(ctx context.Context, made map[string]render.SecretFact) error {
	o, name := r.owner, made[secretGenericKubeconfig].Name
	if o.Input.Owner.Kind != Garden || name == "" {
		return nil
	}
	live, _, err := o.readStatus(ctx)
	if err != nil {
		return err
	}
	if live.GetAnnotations()[gardencorev1beta1.GenericTokenKubeconfigSecretName] == name {
		return nil
	}
	annotations := map[string]any{gardencorev1beta1.GenericTokenKubeconfigSecretName: name}
	_, err = o.ObjectCluster.MergePatch(ctx, o.Ref, map[string]any{"metadata": map[string]any{"annotations": annotations}}, settingsByKind[Garden].fieldManager, "")
	return o.ObjectCluster.Explain(o.Ref, "write the name of its generic kubeconfig to", err)
}

// advertisedAddresses returns the addresses of a Garden: its API server is at its first domain.
func advertisedAddresses(garden map[string]any) []operatorv1alpha1.AdvertisedAddress {
	domains, _, _ := unstructured.NestedSlice(garden, "spec", "virtualCluster", "dns", "domains")
	if len(domains) == 0 {
		return nil
	}
	first, _ := domains[0].(map[string]any)
	name, _ := first["name"].(string)
	if name == "" {
		return nil
	}
	return []operatorv1alpha1.AdvertisedAddress{{Name: operatorv1alpha1.AdvertisedAddressVirtualGarden, URL: "https://api." + name}}
}
