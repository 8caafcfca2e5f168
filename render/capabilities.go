// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/chartutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes/scheme"
)

// capabilitiesOf returns the group versions and kinds of an API server of a Kubernetes version with
// its defaults. Helm takes them from the discovery of a cluster. An unreadable version means
// DefaultKubernetesVersion.
func capabilitiesOf(kubernetes string) *chartutil.Capabilities {
	caps := chartutil.DefaultCapabilities.Copy()
	parsed, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		parsed, _ = chartutil.ParseKubeVersion(DefaultKubernetesVersion)
	}
	caps.KubeVersion, caps.APIVersions = *parsed, versionsServedBy(parsed.Major+"."+parsed.Minor)
	return caps
}

// serverTypes are the types that API servers serve or have served.
var serverTypes = sync.OnceValue(func() *runtime.Scheme {
	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme} {
		if err := add(out); err != nil {
			panic(err) // two Go types with one name
		}
	}
	return out
})

var servedVersions sync.Map // chartutil.VersionSet, by major.minor

// versionsServedBy lists the APIs that API servers of a release serve.
func versionsServedBy(release string) chartutil.VersionSet {
	if known, ok := servedVersions.Load(release); ok {
		return known.(chartutil.VersionSet)
	}
	at := version.MustParseGeneric(release)
	// Every API server has the aggregation layer, but its types are not among those of clients.
	out := chartutil.VersionSet{"apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1/APIService"}
	for gvk := range serverTypes().AllKnownTypes() {
		if !isServed(gvk, at) {
			continue
		}
		if gv := gvk.GroupVersion().String(); !out.Has(gv) {
			out = append(out, gv)
		}
		out = append(out, gvk.GroupVersion().String()+"/"+gvk.Kind)
	}
	slices.Sort(out)
	servedVersions.Store(release, out)
	return out
}

// betaDisabledRelease is the first release that does not serve new beta versions by default.
var betaDisabledRelease = version.MajorMinor(1, 24)

// introducedIn returns the release that added a kind in a version, or false if its Go type does not
// tell.
func introducedIn(object any) (*version.Version, bool) {
	if of, says := object.(interface{ APILifecycleIntroduced() (int, int) }); says {
		major, minor := of.APILifecycleIntroduced()
		return version.MajorMinor(uint(major), uint(minor)), true
	}
	return nil, false
}

// isServed reports whether a release serves a kind by default, according to the lifecycle of its Go
// type. API servers do not enable alpha versions by default, nor beta versions of kinds without one
// before 1.24
// (https://github.com/kubernetes/enhancements/tree/master/keps/sig-architecture/3136-beta-apis-off-by-default).
func isServed(gvk schema.GroupVersionKind, at *version.Version) bool {
	object, err := serverTypes().New(gvk)
	if _, is := object.(metav1.Object); err != nil || !is || gvk.Version == runtime.APIVersionInternal || strings.Contains(gvk.Version, "alpha") {
		return false
	}
	if since, says := introducedIn(object); says && at.LessThan(since) {
		return false
	}
	if strings.Contains(gvk.Version, "beta") && !hasHadBeta(gvk.GroupKind()) {
		return false
	}
	if of, says := object.(interface{ APILifecycleRemoved() (int, int) }); says {
		major, minor := of.APILifecycleRemoved()
		return at.LessThan(version.MajorMinor(uint(major), uint(minor)))
	}
	return true
}

// hasHadBeta reports whether a kind had a beta version before betaDisabledRelease.
func hasHadBeta(kind schema.GroupKind) bool {
	return slices.ContainsFunc(serverTypes().VersionsForGroupKind(kind), func(gv schema.GroupVersion) bool {
		object, err := serverTypes().New(gv.WithKind(kind.Kind))
		since, says := introducedIn(object)
		return err == nil && says && strings.Contains(gv.Version, "beta") && since.LessThan(betaDisabledRelease)
	})
}
