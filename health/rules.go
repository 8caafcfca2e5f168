// SPDX-License-Identifier: Apache-2.0

package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rule judges objects of one kind.
type rule struct {
	check         func(*unstructured.Unstructured, inputs) *Failure
	checkProgress func(*unstructured.Unstructured, inputs) (bool, string)
	// isManagedResourceKind is set for kinds that upstream's resource manager judges.
	isManagedResourceKind bool
	// derivesStatus is set for kinds without a rule in kstatus.
	derivesStatus bool
}

// objectCheck adapts a check that needs only the object.
func objectCheck(check func(*unstructured.Unstructured) *Failure) func(*unstructured.Unstructured, inputs) *Failure {
	return func(obj *unstructured.Unstructured, _ inputs) *Failure { return check(obj) }
}

func objectProgress(f func(*unstructured.Unstructured) (bool, string)) func(*unstructured.Unstructured, inputs) (bool, string) {
	return func(obj *unstructured.Unstructured, _ inputs) (bool, string) { return f(obj) }
}

// ruleFor returns the rule of a kind. It has one for APIService: upstream has the check but does
// not use it (reference, section 1.8), so OnlyManagedResourceKinds excludes it.
func ruleFor(gk schema.GroupKind) (rule, bool) {
	r, ok := rule{}, true
	switch gk.Group {
	case "apps", "extensions":
		r, ok = appsRule(gk.Kind)
	case "", "batch":
		r, ok = coreRule(gk.Kind)
	case groupMonitoring:
		r, ok = monitoringRule(gk.Kind)
	case groupCertManagement:
		r, ok = certificateRule(gk.Kind)
	case "core.gardener.cloud", "operator.gardener.cloud", "resources.gardener.cloud":
		r, ok = gardenerRule(gk.Kind)
	case "extensions.gardener.cloud":
		// A Cluster is a copy of other objects and has no status.
		if gk.Kind == "Cluster" {
			return rule{}, false
		}
		r = rule{check: objectCheck(checkExtensionObject), derivesStatus: true}
	case "apiextensions.k8s.io":
		r, ok = rule{check: objectCheck(checkCustomResourceDefinition), isManagedResourceKind: true}, gk.Kind == "CustomResourceDefinition"
	case "autoscaling.k8s.io":
		r, ok = rule{check: objectCheck(checkVerticalPodAutoscaler), isManagedResourceKind: true, derivesStatus: true}, gk.Kind == "VerticalPodAutoscaler"
	case "apiregistration.k8s.io":
		r, ok = rule{check: objectCheck(checkAPIService), derivesStatus: true}, gk.Kind == "APIService"
	case "seedmanagement.gardener.cloud":
		r, ok = rule{check: objectCheck(checkManagedSeed), derivesStatus: true}, gk.Kind == "ManagedSeed"
	case "druid.gardener.cloud":
		r, ok = rule{check: objectCheck(checkEtcd), derivesStatus: true}, gk.Kind == "Etcd"
	case "machine.sapcloud.io":
		r, ok = rule{check: objectCheck(checkMachineDeployment), derivesStatus: true}, gk.Kind == "MachineDeployment"
	default:
		ok = false
	}
	if !ok {
		return rule{}, false
	}
	return r, true
}

func appsRule(kind string) (rule, bool) {
	switch kind {
	case "Deployment":
		return rule{check: deploymentFailure, checkProgress: deploymentProgressing, isManagedResourceKind: true}, true
	case "StatefulSet":
		return rule{check: objectCheck(checkStatefulSet), checkProgress: objectProgress(IsStatefulSetProgressing), isManagedResourceKind: true}, true
	case "DaemonSet":
		return rule{check: objectCheck(checkDaemonSet), checkProgress: objectProgress(IsDaemonSetProgressing), isManagedResourceKind: true}, true
	case "ReplicaSet":
		return rule{check: objectCheck(checkReplicaSet), isManagedResourceKind: true}, true
	}
	return rule{}, false
}

func coreRule(kind string) (rule, bool) {
	switch kind {
	case "Job":
		return rule{check: objectCheck(checkJob), isManagedResourceKind: true}, true
	case "Pod":
		return rule{check: objectCheck(checkPod), isManagedResourceKind: true}, true
	case "ReplicationController":
		return rule{check: objectCheck(checkReplicationController), isManagedResourceKind: true}, true
	case "Service":
		return rule{check: objectCheck(checkService), isManagedResourceKind: true}, true
	case "Node":
		return rule{check: objectCheck(checkNode), derivesStatus: true}, true
	}
	return rule{}, false
}

func monitoringRule(kind string) (rule, bool) {
	switch kind {
	case "Prometheus":
		return rule{check: objectCheck(checkMonitoring), checkProgress: objectProgress(IsPrometheusProgressing), isManagedResourceKind: true, derivesStatus: true}, true
	case "Alertmanager":
		return rule{check: objectCheck(checkMonitoring), checkProgress: objectProgress(IsAlertmanagerProgressing), isManagedResourceKind: true, derivesStatus: true}, true
	}
	return rule{}, false
}

func certificateRule(kind string) (rule, bool) {
	switch kind {
	case "Certificate":
		return rule{check: objectCheck(checkCertificate), checkProgress: objectProgress(IsCertificateProgressing), isManagedResourceKind: true, derivesStatus: true}, true
	case "Issuer":
		return rule{check: objectCheck(checkCertificateIssuer), checkProgress: objectProgress(IsCertificateIssuerProgressing), isManagedResourceKind: true, derivesStatus: true}, true
	}
	return rule{}, false
}

func gardenerRule(kind string) (rule, bool) {
	switch kind {
	case "ManagedResource":
		return rule{check: objectCheck(checkManagedResource), checkProgress: objectProgress(managedResourceProgressing), derivesStatus: true}, true
	case "Seed":
		return rule{check: checkSeedVerdict, derivesStatus: true}, true
	case "BackupBucket", "BackupEntry":
		return rule{check: objectCheck(checkExtensionObject), derivesStatus: true}, true
	case "Garden", "Shoot":
		return rule{check: objectCheck(checkOperationAndConditions), checkProgress: objectProgress(operationProgressing), derivesStatus: true}, true
	case "ControllerInstallation":
		return rule{check: objectCheck(checkControllerInstallation), checkProgress: objectProgress(controllerInstallationProgressing), derivesStatus: true}, true
	}
	return rule{}, false
}
