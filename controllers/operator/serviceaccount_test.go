// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestServiceAccount: a Landscape with a ServiceAccount writes to the runtime cluster only with
// that account, with the rights in docs/reference/permissions.md. A missing right is an error
// that names the account and the right.
func TestServiceAccount(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("account")
	account := "system:serviceaccount:" + w.namespace + ":syncer"
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "syncer"}})
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "syncer"}}
	// may grants the account rights until the end of the test.
	may := func(name string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		name += "-" + w.namespace
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects}
		w.create(role)
		w.create(binding)
		t.Cleanup(func() {
			require.NoError(t, w.client.Delete(context.Background(), role))
			require.NoError(t, w.client.Delete(context.Background(), binding))
		})
	}
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	// Definitions that other tests applied would leave nothing to write.
	left := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.InventoryNamespace, Name: owner.InventoryPrefix + "landscape-bootstrap"}}
	require.NoError(t, client.IgnoreNotFound(w.client.Delete(context.Background(), left)))
	p := newProxy(t)
	w.startOperator(func(r *Role) { r.Config = p.clientConfig() })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.ServiceAccountName, spec.Interval = "syncer", &metav1.Duration{Duration: time.Second}
	})
	forbidden := func(verbs, resource string) {
		t.Helper()
		hint := regexp.MustCompile(regexp.QuoteMeta(`allow user "`+account+`" the verb `) + "(" + verbs + ")" + regexp.QuoteMeta(" on "+resource+" in ") + "(all namespaces|namespace [-a-z0-9]+)" + regexp.QuoteMeta(" by a Role or ClusterRole: kubectl "))
		w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
			return strings.HasPrefix(readyText(l), "False ApplyFailed") && hint.MatchString(readyText(l))
		})
		assert.Empty(t, w.configMapValue(s.name))
	}
	const all = "get list watch create patch delete"
	forbidden("list", "configmaps")
	may("configmaps-to-read", rule("", "configmaps", "get", "list", "watch"))
	forbidden("patch", "configmaps")
	may("configmaps", rule("", "configmaps", strings.Fields(all)...), rule("", "secrets", strings.Fields(all)...))
	forbidden("get|patch", "customresourcedefinitions.apiextensions.k8s.io")
	may("rest", rule("coordination.k8s.io", "leases", "get", "create", "update"), rule("", "namespaces", "get", "list", "watch", "create", "patch"),
		rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch", "create", "patch"))
	w.awaitApplied(s, "", "1")
	w.awaitApplied(s, s.pushValue("2"), "2")
	w.awaitRepaired(s, "2")

	writes := p.takeRequests(func(r recordedRequest) bool { return r.method != http.MethodGet })
	own := 0
	for _, r := range writes {
		switch {
		case r.impersonatedUser == account:
			own++
		case r.impersonatedUser == "" && (strings.Contains(r.uri, "/landscapes/"+s.name+"/status") || strings.Contains(r.uri, "/events") || strings.Contains(r.uri, "/namespaces/garden/leases") || r.uri == "/api/v1/namespaces"):
			// The operator's own writes: status, Events and its lease, which needs its namespace.
		default:
			assert.Fail(t, "a write that is not the ServiceAccount's", r.String())
		}
	}
	assert.Positive(t, own)

	// Another ServiceAccount counts from the next sync on.
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.ServiceAccountName = "nobody" })
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), ":nobody\"") })
	assert.Contains(t, readyText(l), `allow user "system:serviceaccount:`+w.namespace+`:nobody" the verb`)
}
