// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operationsv1alpha1 "github.com/pergola-dev/pergola/api/operations/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/webhook/admission"
	"github.com/pergola-dev/pergola/controllers/webhook/authorizer"
)

// roleBootstrapper is the only role that a gardenlet may give to another.
const roleBootstrapper = "gardener.cloud:system:seed-bootstrapper"

// Keys of a bootstrap token (k8s.io/cluster-bootstrap/token/api).
const (
	keyUsageAuthentication = "usage-bootstrap-authentication"
	keyUsageSigning        = "usage-bootstrap-signing"
	keyExtraGroups         = "auth-extra-groups"
)

// generatedNameResources are resources that are identified by their content, so that the API server
// may generate their names.
var generatedNameResources = []string{"backupentries", "bastions", "certificatesigningrequests"}

// prefixSourceEntry begins the BackupEntry from which a moved Shoot is restored.
const prefixSourceEntry = "source-"

func requesterOf(request *admissionv1.AdmissionRequest) authorizer.Requester {
	return authorizer.RequesterOf(request.UserInfo.Username, request.UserInfo.Groups)
}

// seedRestriction lets a gardenlet only create objects of its Seed. Authorizers do not see the name
// and content of a new object, so this webhook checks them.
func (w *webhooks) seedRestriction(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	who := requesterOf(request)
	if who.Problem == "" && who.Seed == "" {
		return allowed()
	}
	if response, err := w.authorizeNamed(request, who); err != nil || !response.Allowed {
		return response, err
	}
	if request.Operation == admissionv1.Create {
		return w.checkSeedObject(ctx, request, who.Seed)
	}
	return allowed()
}

// shootRestriction does the same for the gardenlet of a self-hosted Shoot and for gardenadm.
func (w *webhooks) shootRestriction(_ context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	who := requesterOf(request)
	if who.Shoot.Name == "" {
		return allowed()
	}
	if response, err := w.authorizeNamed(request, who); err != nil || !response.Allowed {
		return response, err
	}
	if request.Operation == admissionv1.Create {
		return checkShootObject(request, who)
	}
	return allowed()
}

// authorizeNamed asks the authorizer again, with the name.
func (w *webhooks) authorizeNamed(request *admissionv1.AdmissionRequest, who authorizer.Requester) (*admissionv1.AdmissionResponse, error) {
	if who.Problem != "" {
		return forbidden("%s", who.Problem)
	}
	if request.Operation == admissionv1.Create && request.Name == "" && !slices.Contains(generatedNameResources, request.Resource.Resource) {
		return forbidden("metadata.generateName: a gardenlet must give its new objects a name")
	}
	may, why := w.Authorizers.IsAllowed(request.UserInfo.Username, request.UserInfo.Groups, request)
	if may {
		return allowed()
	}
	return forbidden("%s", why)
}

// checkSeedObject checks the content of a gardenlet's new object.
func (w *webhooks) checkSeedObject(ctx context.Context, request *admissionv1.AdmissionRequest, seed string) (*admissionv1.AdmissionResponse, error) {
	switch request.Resource.Resource {
	case "backupbuckets":
		return checkDecoded(request, func(b *gardencorev1beta1.BackupBucket) (*admissionv1.AdmissionResponse, error) {
			return requireSeed("spec.seedName", b.Spec.SeedName, seed)
		})
	case "backupentries":
		return checkDecoded(request, func(e *gardencorev1beta1.BackupEntry) (*admissionv1.AdmissionResponse, error) {
			return w.checkBackupEntry(ctx, e, seed)
		})
	case "bastions":
		return checkDecoded(request, func(b *operationsv1alpha1.Bastion) (*admissionv1.AdmissionResponse, error) {
			return requireSeed("spec.seedName", b.Spec.SeedName, seed)
		})
	case "certificatesigningrequests":
		return checkDecoded(request, func(r *certificatesv1.CertificateSigningRequest) (*admissionv1.AdmissionResponse, error) {
			return checkSigningRequest(r, authorizer.GroupSeeds, authorizer.UserSeed+seed)
		})
	case "clusterrolebindings":
		return checkDecoded(request, func(b *rbacv1.ClusterRoleBinding) (*admissionv1.AdmissionResponse, error) {
			if b.RoleRef.Kind != "ClusterRole" || b.RoleRef.Name != roleBootstrapper {
				return forbidden("roleRef: a gardenlet may bind only ClusterRole %s", roleBootstrapper)
			}
			return allowed()
		})
	case "secrets":
		return checkDecoded(request, checkBootstrapToken)
	}
	return allowed()
}

func checkDecoded[T any](request *admissionv1.AdmissionRequest, look func(*T) (*admissionv1.AdmissionResponse, error)) (*admissionv1.AdmissionResponse, error) {
	object, err := decodeObject[T](request.Object.Raw)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return nil, admission.BadRequest("the request is a creation, but has no object")
	}
	return look(object)
}

func requireSeed(field string, has *string, seed string) (*admissionv1.AdmissionResponse, error) {
	if has == nil || *has != seed {
		return forbidden("%s: must be %q, the Seed of the gardenlet", field, seed)
	}
	return allowed()
}

// checkBackupEntry requires the bucket of the Seed, or a copy of the entry of a Shoot in
// restoration.
func (w *webhooks) checkBackupEntry(ctx context.Context, entry *gardencorev1beta1.BackupEntry, seed string) (*admissionv1.AdmissionResponse, error) {
	if response, err := requireSeed("spec.seedName", entry.Spec.SeedName, seed); err != nil || !response.Allowed {
		return response, err
	}
	core := gardencorev1beta1.SchemeGroupVersion
	if original, is := strings.CutPrefix(entry.Name, prefixSourceEntry); is {
		return w.checkSourceEntry(ctx, entry, original)
	}
	live, err := w.Garden.Get(ctx, core.WithResource("backupbuckets"), "", entry.Spec.BucketName)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading BackupBucket %s: %w", entry.Spec.BucketName, err)
	}
	if live == nil {
		return forbidden("spec.bucketName: BackupBucket %q does not exist", entry.Spec.BucketName)
	}
	bucket, err := toTyped[gardencorev1beta1.BackupBucket](live)
	if err != nil {
		return nil, err
	}
	return requireSeed("spec.bucketName: spec.seedName of BackupBucket "+entry.Spec.BucketName, bucket.Spec.SeedName, seed)
}

func (w *webhooks) checkSourceEntry(ctx context.Context, entry *gardencorev1beta1.BackupEntry, original string) (*admissionv1.AdmissionResponse, error) {
	core := gardencorev1beta1.SchemeGroupVersion
	i := slices.IndexFunc(entry.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Shoot" })
	if i < 0 {
		return forbidden("metadata.ownerReferences: has no Shoot, but a BackupEntry %s… needs one", prefixSourceEntry)
	}
	live, err := w.Garden.Get(ctx, core.WithResource("shoots"), entry.Namespace, entry.OwnerReferences[i].Name)
	if err != nil {
		return nil, fmt.Errorf("reading Shoot %s/%s: %w", entry.Namespace, entry.OwnerReferences[i].Name, err)
	}
	shoot, err := toTyped[gardencorev1beta1.Shoot](live)
	if err != nil {
		return nil, err
	}
	if last := shoot.Status.LastOperation; last == nil || last.Type != gardencorev1beta1.LastOperationTypeRestore || last.State != gardencorev1beta1.LastOperationStateProcessing {
		return forbidden("Shoot %s/%s is not being restored", entry.Namespace, shoot.Name)
	}
	live, err = w.Garden.Get(ctx, core.WithResource("backupentries"), entry.Namespace, original)
	if apierrors.IsNotFound(err) {
		return forbidden("BackupEntry %s/%s does not exist, but this must be a copy of it", entry.Namespace, original)
	}
	if err != nil {
		return nil, fmt.Errorf("reading BackupEntry %s/%s: %w", entry.Namespace, original, err)
	}
	copied, err := toTyped[gardencorev1beta1.BackupEntry](live)
	if err != nil {
		return nil, err
	}
	if !equality.Semantic.DeepEqual(entry.Spec, copied.Spec) {
		return forbidden("spec: must be that of BackupEntry %s/%s", entry.Namespace, original)
	}
	return allowed()
}

// checkSigningRequest only allows client certificates with the gardenlet's own name.
func checkSigningRequest(request *certificatesv1.CertificateSigningRequest, group, user string) (*admissionv1.AdmissionResponse, error) {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return invalid("spec.request: is not a certificate request in PEM form")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return invalid("spec.request: is not a certificate request")
	}
	switch {
	case len(parsed.Subject.Organization) != 1 || parsed.Subject.Organization[0] != group || parsed.Subject.CommonName != user:
		return forbidden("spec.request: the certificate must be for %q of the organization %q", user, group)
	case len(parsed.DNSNames)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0:
		return forbidden("spec.request: the certificate of a gardenlet must have no other names")
	}
	client := map[certificatesv1.KeyUsage]bool{certificatesv1.UsageKeyEncipherment: false, certificatesv1.UsageDigitalSignature: true, certificatesv1.UsageClientAuth: true}
	for _, usage := range request.Spec.Usages {
		if _, may := client[usage]; !may {
			return forbidden("spec.usages: a gardenlet does not need %q", usage)
		}
	}
	for usage, must := range client {
		if must && !slices.Contains(request.Spec.Usages, usage) {
			return forbidden("spec.usages: must have %q", usage)
		}
	}
	return allowed()
}

// checkBootstrapToken requires that a token for another gardenlet has no other use.
func checkBootstrapToken(secret *corev1.Secret) (*admissionv1.AdmissionResponse, error) {
	if secret.Namespace != metav1.NamespaceSystem || !strings.HasPrefix(secret.Name, "bootstrap-token-") {
		return allowed()
	}
	data := func(key string) string {
		if text, is := secret.StringData[key]; is {
			return text
		}
		return string(secret.Data[key])
	}
	switch {
	case secret.Type != corev1.SecretTypeBootstrapToken:
		return invalid("type: must be %s", corev1.SecretTypeBootstrapToken)
	case data(keyUsageAuthentication) != "true", data(keyUsageSigning) != "true":
		return invalid("data: %s and %s must be true", keyUsageAuthentication, keyUsageSigning)
	case data(keyExtraGroups) != "":
		return invalid("data[%s]: must not be set", keyExtraGroups)
	}
	return allowed()
}

// checkShootObject checks new objects of a self-hosted Shoot's gardenlet and of gardenadm.
func checkShootObject(request *admissionv1.AdmissionRequest, who authorizer.Requester) (*admissionv1.AdmissionResponse, error) {
	mine := func(field string, ref *corev1.ObjectReference) (*admissionv1.AdmissionResponse, error) {
		if ref == nil || ref.Namespace != who.Shoot.Namespace || ref.Name != who.Shoot.Name {
			return forbidden("%s: must be Shoot %s", field, who.Shoot)
		}
		return allowed()
	}
	switch request.Resource.Resource {
	case "backupbuckets":
		return checkDecoded(request, func(b *gardencorev1beta1.BackupBucket) (*admissionv1.AdmissionResponse, error) {
			return mine("spec.shootRef", b.Spec.ShootRef)
		})
	case "backupentries":
		return checkDecoded(request, func(e *gardencorev1beta1.BackupEntry) (*admissionv1.AdmissionResponse, error) {
			return mine("spec.shootRef", e.Spec.ShootRef)
		})
	case "projects":
		return checkDecoded(request, func(p *gardencorev1beta1.Project) (*admissionv1.AdmissionResponse, error) {
			if p.Spec.Namespace == nil || *p.Spec.Namespace != who.Shoot.Namespace {
				return forbidden("spec.namespace: must be %q, the namespace of the Shoot", who.Shoot.Namespace)
			}
			return allowed()
		})
	case "shoots":
		if request.Name != who.Shoot.Name || request.Namespace != who.Shoot.Namespace {
			return forbidden("only Shoot %s may be created", who.Shoot)
		}
	case "secrets":
		return checkDecoded(request, checkBootstrapToken)
	case "certificatesigningrequests":
		return checkDecoded(request, func(r *certificatesv1.CertificateSigningRequest) (*admissionv1.AdmissionResponse, error) {
			return checkSigningRequest(r, authorizer.GroupShoots, authorizer.UserShoot+who.Shoot.Namespace+":"+who.Shoot.Name)
		})
	}
	return allowed()
}
