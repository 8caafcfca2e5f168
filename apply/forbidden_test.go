// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHintsAboutRights(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"in a namespace": {
			`configmaps "a" is forbidden: User "system:serviceaccount:garden:syncer" cannot patch resource "configmaps" in API group "" in the namespace "shop"`,
			`allow user "system:serviceaccount:garden:syncer" the verb patch on configmaps in namespace shop by a Role or ClusterRole: ` +
				`kubectl -n shop create role syncer-patch-configmaps --verb=patch --resource=configmaps && kubectl -n shop create rolebinding syncer-patch-configmaps --role=syncer-patch-configmaps --serviceaccount=garden:syncer`,
		},
		"in all namespaces": {
			`deployments.apps is forbidden: User "ada" cannot list resource "deployments" in API group "apps" at the cluster scope`,
			`allow user "ada" the verb list on deployments.apps in all namespaces by a Role or ClusterRole: ` +
				`kubectl create clusterrole pergola-list-deployments.apps --verb=list --resource=deployments.apps && kubectl create clusterrolebinding pergola-list-deployments.apps --clusterrole=pergola-list-deployments.apps --user=ada`,
		},
		"impersonation": {
			`serviceaccounts "syncer" is forbidden: User "system:serviceaccount:garden:pergola-operator" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "garden"`,
			`allow user "system:serviceaccount:garden:pergola-operator" the verb impersonate on serviceaccounts syncer in namespace garden: run pergola install with operator.impersonation.serviceAccounts: [syncer] (docs/howto/install.md)`,
		},
		"a user with a blank": {
			`namespaces is forbidden: User "Ada L" cannot watch resource "namespaces" in API group "" at the cluster scope`,
			`allow user "Ada L" the verb watch on namespaces in all namespaces by a Role or ClusterRole: ` +
				`kubectl create clusterrole pergola-watch-namespaces --verb=watch --resource=namespaces && kubectl create clusterrolebinding pergola-watch-namespaces --clusterrole=pergola-watch-namespaces --user='Ada L'`,
		},
		"admission": {`pods "a" is forbidden: violates PodSecurity "restricted"`, "an admission rule forbids it: follow the message"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &ObjectError{Message: test.message}
			explainForbidden(e)
			assert.Equal(t, test.want, e.Hint)
		})
	}
}
