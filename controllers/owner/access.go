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

// madeAccess is access to the API server of an owner that the secrets manager has made.
type madeAccess struct {
	// secret is the name of the Secret that was generated; empty when none was asked for.
	secret string
	// former is the authority of clients that another one takes the place of, in PEM, while the API
	// server knows certificates of that one alone.
	former []byte
}

// noteServes notes that the control plane of an owner makes access to an API server.
func (o *subject) noteServes(made madeAccess, now time.Time) {
	o.note(func(s *State) { s.access, s.accessSeen = made, now })
}

// serves tells whether there is an API server that can be asked: that of a Shoot whose components
// make no access cannot.
func (o *subject) serves() bool { return o.now().access.secret != "" || o.identity().Kind == Garden }

// publishAccess gives the access to the API server of an owner, which the secrets manager has made,
// the name by which it is found. While a new authority of clients is made known beside another one,
// the access of before stays: API servers that were not started anew yet know no other. It has its
// turn with publishRotated.
func (r *run) publishAccess(ctx context.Context, manager *secrets.Manager, result render.Result) error {
	generated, asked := manager.Get(access.SecretName)
	if target := r.owner.Target; !asked || r.owner.Input.Owner.Kind == Garden && target != nil && !access.IsLate(target.RESTConfig()) {
		return nil // what is given by somebody may well be in a Secret of this name
	}
	configs, err := requestsOf(r.owner, result)
	if err != nil {
		return err
	}
	made := madeAccess{secret: generated.Name}
	if old, kept := manager.GetOld(authorityOfAccess(configs)); kept {
		made.former = old.Data[keyCACertificate].Reveal() // a certificate is known to all
	}
	r.owner.noteServes(made, r.reconciler.Clock.Now())
	_, err = r.owner.publish(ctx, made)
	return err
}

// publishRotated is for when all has come about that was applied, and no API server is left that
// knows only the authority of before.
func (r *run) publishRotated(ctx context.Context) error {
	made := r.owner.now().access
	if made.secret == "" || made.former == nil {
		return nil
	}
	if r.owner.now().rotation.UnderWay() {
		if err := r.formerPodsGone(ctx); err != nil {
			return err
		}
	}
	made.former = nil
	r.owner.noteServes(made, r.reconciler.Clock.Now())
	_, err := r.owner.publish(ctx, made)
	return err
}

// keyCACertificate is where a generated authority has its certificate.
const keyCACertificate = "ca.crt"

// authorityOfAccess is the request for the authority that signs the client certificate of the
// access; empty where it has none.
func authorityOfAccess(configs []secrets.Config) string {
	byName := make(map[string]secrets.Config, len(configs))
	for _, c := range configs {
		byName[c.Name] = c
	}
	return byName[byName[access.SecretName].ClientCertificate].SigningCA
}

// publish gives access that was made the name by which it is found; it says whether that had to be
// written.
func (o *subject) publish(ctx context.Context, made madeAccess) (written bool, err error) {
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return false, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	namespace := o.ControlPlane()
	ref := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: access.SecretName}
	written, err = access.Publish(ctx, client, namespace, made.secret, made.former)
	return written, o.Local.Explain(ref, "write the access to the API server of "+o.String()+" to", err)
}

// accessInterval is how often it is looked whether the access to an API server is still there while
// that answers.
const accessInterval = 5 * time.Minute

// accessDue tells whether it is time to look, and notes that somebody does.
func (o *subject) accessDue(now time.Time) (due bool) {
	o.note(func(s *State) {
		if due = now.Sub(s.accessSeen) >= accessInterval; due {
			s.accessSeen = now
		}
	})
	return due
}

// restoreAccess brings back the access to the API server of an owner that somebody has deleted or
// changed since it was reconciled, and says whether it had to. Nobody else notices that: it is no
// object of a bundle.
func (o *subject) restoreAccess(ctx context.Context) bool {
	made := o.now().access
	if made.secret == "" {
		return false
	}
	// That it could not be written is no news to who is told that there is no access.
	written, err := o.publish(ctx, made)
	return err == nil && written
}

// keepTokens begins to request the tokens of the control plane, which may not be there yet.
func (r *run) keepTokens() {
	o := r.owner
	manager, has := managers[o.Input.Owner.Kind]
	if !has || o.Target == nil || !o.serves() {
		return
	}
	r.reconciler.Tokens.Keep(accesstokens.Site{
		Namespace: o.Input.Owner.ControlPlaneNamespace, Local: o.Local.RESTConfig(), Target: o.Target.RESTConfig(), Manager: manager,
	})
}

// managers are the Deployments of gardener-resource-manager for a control plane, by the kind of its
// owner. The one without prefix in namespace garden is for the runtime cluster.
var managers = map[string]string{Garden: "virtual-garden-gardener-resource-manager", Shoot: "gardener-resource-manager"}

// ConnectShoot gives a Shoot that is reconciled by itself its API server, by the access that is
// written with its control plane. outside says that names of Services on the seed mean nothing
// here: then it is reached by its own domain. fence may keep requests back; nil keeps none.
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

// shootAccess is the access to the API server of a Shoot, which is found when it is needed.
func (o *Owner) shootAccess(outside bool, clk clock.PassiveClock) (*rest.Config, error) {
	read, err := access.ReaderOf(o.Local.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	// The namespace of the control plane is known with the input, which may come later.
	source := access.OfShoot(o.Input.Owner.Namespace+"/"+o.Input.Owner.Name, o.Input.Owner.ControlPlaneNamespace, read, clk)
	if outside {
		source.Proxy = o.Local.RESTConfig().Proxy
		source.Outside = func(context.Context) (string, error) { return o.address() }
	}
	return access.Late(source), nil
}

// ShootAccess is the access to the API server of a Shoot from outside of its seed; where nobody
// serves it, the error says why.
func ShootAccess(ctx context.Context, o Owner) (*rest.Config, error) {
	at := o.from(State{})
	switch served, err := at.isServed(ctx); {
	case err != nil:
		return nil, err
	case !served:
		return nil, errors.New(at.whyUnserved())
	}
	return at.shootAccess(true, nil)
}

// address is where a Shoot is reached by its own domain.
func (o *Owner) address() (string, error) {
	domain, _, err := unstructured.NestedString(o.Input.Objects[Shoot], "spec", "dns", "domain")
	if err != nil || domain == "" {
		return "", fmt.Errorf("%s has no domain by which it is reached from outside of its seed", o)
	}
	return "https://api." + domain, nil
}

// secretGenericKubeconfig is the request whose Secret says how pods beside the virtual garden reach
// it.
const secretGenericKubeconfig = "generic-token-kubeconfig"

// nameKubeconfig says in an annotation of a Garden which Secret its generic kubeconfig is in:
// extensions of the garden find it so, as those of a Shoot find it by its Cluster. The name is
// another one after each rotation.
func (r *run) nameKubeconfig(ctx context.Context, made map[string]render.SecretFact) error {
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
	_, err = o.Home.MergePatch(ctx, o.Ref, map[string]any{"metadata": map[string]any{"annotations": annotations}}, kinds[Garden].role, "")
	return o.Home.Explain(o.Ref, "write the name of its generic kubeconfig to", err)
}

// advertised are the addresses of a Garden: its API server is at the first of its domains.
func advertised(garden map[string]any) []operatorv1alpha1.AdvertisedAddress {
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
