// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"
)

// defaultReconcileTimeout is the time that Gardener waits for an object of kind Extension.
const defaultReconcileTimeout = 3 * time.Minute

// SetDefaults_ControllerRegistration sets the defaults of a ControllerRegistration.
func SetDefaults_ControllerRegistration(registration *ControllerRegistration) {
	for i := range registration.Spec.Resources {
		SetDefaults_ControllerResource(&registration.Spec.Resources[i])
	}
	if deployment := registration.Spec.Deployment; deployment != nil {
		setDefault(&deployment.Policy, ControllerDeploymentPolicyOnDemand)
	}
}

// SetDefaults_ControllerResource sets the defaults of an entry of a registration. Some apply to one
// kind only.
func SetDefaults_ControllerResource(resource *ControllerResource) {
	setDefault(&resource.Primary, true)
	switch resource.Kind {
	case "Extension":
		if len(resource.ClusterCompatibility) == 0 {
			resource.ClusterCompatibility = []ClusterType{ClusterTypeShoot}
		}
		setDefaultDuration(&resource.ReconcileTimeout, defaultReconcileTimeout)
		ensureBlock(&resource.Lifecycle)
	case "SelfHostedShootExposure":
		setDefault(&resource.ContinuousEndpointUpdate, true)
	}
	if lifecycle := resource.Lifecycle; lifecycle != nil {
		setDefault(&lifecycle.Reconcile, AfterKubeAPIServer)
		setDefault(&lifecycle.Delete, BeforeKubeAPIServer)
		setDefault(&lifecycle.Migrate, BeforeKubeAPIServer)
	}
}
