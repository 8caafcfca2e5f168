// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// documentedClusterRole returns the ClusterRole of the documentation.
func documentedClusterRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/permissions.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		role := &rbacv1.ClusterRole{}
		if strings.Contains(block[1], "kind: ClusterRole\n") {
			require.NoError(t, yaml.UnmarshalStrict([]byte(block[1]), role))
			return role
		}
	}
	t.Fatal("docs/reference/permissions.md has no ClusterRole")
	return nil
}

// TestImpersonation checks that a landscape with a ServiceAccount uses it for leases, inventories,
// records and objects, and that errors name it.
func TestImpersonation(t *testing.T) {
	const account = "system:serviceaccount:default:lander"
	w := newFolderLandscape(t, "impersonated", map[string]string{"map.yaml": mapFile("impersonated")})
	as := func(o *Options) {
		config := rest.CopyConfig(server.config)
		config.Impersonate.UserName = account
		o.Connections.Configs = map[string]*rest.Config{Runtime: config, Virtual: config}
	}
	w.changeOptions = as
	var c *Converger
	var err error
	eventually(t, "the rights of a former run are gone", func() bool {
		c = w.newConverger()
		err = c.acquireRoleLease(testContext(t), Runtime, operatorLease)
		return err != nil
	})
	require.ErrorContains(t, err, `allow user "`+account+`" the verb get on leases.coordination.k8s.io`)
	require.ErrorContains(t, err, "Lease garden/"+operatorLease)
	_, err = w.sync()
	require.Error(t, err)
	require.ErrorContains(t, err, account)
	require.ErrorContains(t, err, "configmaps")

	role := documentedClusterRole(t)
	role.Name = "impersonated"
	_, err = testClient(t).RbacV1().ClusterRoles().Create(testContext(t), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = testClient(t).RbacV1().ClusterRoleBindings().Create(testContext(t), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "impersonated"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "impersonated"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "lander"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = testClient(t).CoordinationV1().Leases(leasesNamespace).Delete(context.Background(), operatorLease, metav1.DeleteOptions{})
		_ = testClient(t).RbacV1().ClusterRoleBindings().Delete(context.Background(), "impersonated", metav1.DeleteOptions{})
		_ = testClient(t).RbacV1().ClusterRoles().Delete(context.Background(), "impersonated", metav1.DeleteOptions{})
	})
	eventually(t, "the rights are known", func() bool {
		c = w.newConverger()
		return c.acquireRoleLease(testContext(t), Runtime, operatorLease) == nil
	})
	w.syncEventually()
	require.NotEmpty(t, uidOf(t, "impersonated"))

	w.write("shoot.yaml", shootFile("impersonated"))
	_, err = w.sync()
	require.ErrorContains(t, err, `Shoot default/impersonated`)
	require.ErrorContains(t, err, `"`+account+`"`)
	require.ErrorContains(t, err, "shoots.core.gardener.cloud")
	assert.Regexp(t, `the verb (get|list|patch|create) on shoots`, err.Error())
}
