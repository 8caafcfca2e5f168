package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rule judges objects of one kind.
type rule struct {
	check       func(*unstructured.Unstructured, inputs) *Failure
	progressing func(*unstructured.Unstructured, inputs) (bool, string)
	// managedResource is set for kinds that upstream's resource manager judges.
	managedResource bool
	// ownStatus is set for kinds without a rule in kstatus.
	ownStatus bool
}

// plain adapts a check that needs the object only.
func plain(check func(*unstructured.Unstructured) *Failure) func(*unstructured.Unstructured, inputs) *Failure {
	return func(obj *unstructured.Unstructured, _ inputs) *Failure { return check(obj) }
}

func plainProgress(f func(*unstructured.Unstructured) (bool, string)) func(*unstructured.Unstructured, inputs) (bool, string) {
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
		r = rule{check: plain(checkExtensionObject), ownStatus: true}
	case "apiextensions.k8s.io":
		r, ok = rule{check: plain(checkCustomResourceDefinition), managedResource: true}, gk.Kind == "CustomResourceDefinition"
	case "autoscaling.k8s.io":
		r, ok = rule{check: plain(checkVerticalPodAutoscaler), managedResource: true, ownStatus: true}, gk.Kind == "VerticalPodAutoscaler"
	case "apiregistration.k8s.io":
		r, ok = rule{check: plain(checkAPIService), ownStatus: true}, gk.Kind == "APIService"
	case "seedmanagement.gardener.cloud":
		r, ok = rule{check: plain(checkManagedSeed), ownStatus: true}, gk.Kind == "ManagedSeed"
	case "druid.gardener.cloud":
		r, ok = rule{check: plain(checkEtcd), ownStatus: true}, gk.Kind == "Etcd"
	case "machine.sapcloud.io":
		r, ok = rule{check: plain(checkMachineDeployment), ownStatus: true}, gk.Kind == "MachineDeployment"
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
		return rule{check: deploymentFailure, progressing: deploymentProgressing, managedResource: true}, true
	case "StatefulSet":
		return rule{check: plain(checkStatefulSet), progressing: plainProgress(IsStatefulSetProgressing), managedResource: true}, true
	case "DaemonSet":
		return rule{check: plain(checkDaemonSet), progressing: plainProgress(IsDaemonSetProgressing), managedResource: true}, true
	case "ReplicaSet":
		return rule{check: plain(checkReplicaSet), managedResource: true}, true
	}
	return rule{}, false
}

func coreRule(kind string) (rule, bool) {
	switch kind {
	case "Job":
		return rule{check: plain(checkJob), managedResource: true}, true
	case "Pod":
		return rule{check: plain(checkPod), managedResource: true}, true
	case "ReplicationController":
		return rule{check: plain(checkReplicationController), managedResource: true}, true
	case "Service":
		return rule{check: plain(checkService), managedResource: true}, true
	case "Node":
		return rule{check: plain(checkNode), ownStatus: true}, true
	}
	return rule{}, false
}

func monitoringRule(kind string) (rule, bool) {
	switch kind {
	case "Prometheus":
		return rule{check: plain(checkMonitoring), progressing: plainProgress(IsPrometheusProgressing), managedResource: true, ownStatus: true}, true
	case "Alertmanager":
		return rule{check: plain(checkMonitoring), progressing: plainProgress(IsAlertmanagerProgressing), managedResource: true, ownStatus: true}, true
	}
	return rule{}, false
}

func certificateRule(kind string) (rule, bool) {
	switch kind {
	case "Certificate":
		return rule{check: plain(checkCertificate), progressing: plainProgress(IsCertificateProgressing), managedResource: true, ownStatus: true}, true
	case "Issuer":
		return rule{check: plain(checkCertificateIssuer), progressing: plainProgress(IsCertificateIssuerProgressing), managedResource: true, ownStatus: true}, true
	}
	return rule{}, false
}

func gardenerRule(kind string) (rule, bool) {
	switch kind {
	case "ManagedResource":
		return rule{check: plain(checkManagedResource), progressing: plainProgress(managedResourceProgressing), ownStatus: true}, true
	case "Seed":
		return rule{check: checkSeedVerdict, ownStatus: true}, true
	case "BackupBucket", "BackupEntry":
		return rule{check: plain(checkExtensionObject), ownStatus: true}, true
	case "Garden", "Shoot":
		return rule{check: plain(checkOperated), progressing: plainProgress(operatedProgressing), ownStatus: true}, true
	case "ControllerInstallation":
		return rule{check: plain(checkControllerInstallation), progressing: plainProgress(controllerInstallationProgressing), ownStatus: true}, true
	}
	return rule{}, false
}
