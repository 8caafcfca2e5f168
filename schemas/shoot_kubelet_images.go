package schemas

import (
	"regexp"
	"strings"
)

const (
	pullPolicyField = "imagePullCredentialsVerificationPolicy"
	pullPolicyGate  = "KubeletEnsureSecretPulledImages"
	pullPolicyList  = "NeverVerifyAllowlistedImages"
	longestImage    = 255
)

// imageForm is the name of an image without tag and digest: an optional registry, with or without a
// port, and a path.
var imageForm = regexp.MustCompile(`^((` + registryHost + `(\.` + registryHost + `)*|\[[a-fA-F0-9:]+\])(:[0-9]+)?/)?` + imagePart + `(/` + imagePart + `)*$`)

const (
	registryHost = `([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`
	imagePart    = `[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*`
)

// pullPolicyVersion rejects the policy for a kubelet that does not support it.
func (r *report) pullPolicyVersion(config tree, version string) {
	if minor := minorOf(version); config.at(pullPolicyField).set() && minor > 0 && minor < 35 {
		r.add(config.at(pullPolicyField), TypeForbidden, "Kubernetes 1.%d does not have it; it exists since Kubernetes 1.35", minor)
	}
}

// pullPolicy checks the images on a node for which the kubelet verifies the credentials of pods.
func (r *report) pullPolicy(config tree) {
	policy, images := config.at(pullPolicyField), config.at("preloadedImagesVerificationAllowlist")
	if gate := config.at("featureGates", pullPolicyGate); policy.set() && gate.set() && !gate.is() {
		r.add(policy, TypeForbidden, "needs the feature gate %s, which %s turns off: the kubelet would not start", pullPolicyGate, gate.path)
	}
	if !images.set() {
		return
	}
	if policy.text() != pullPolicyList {
		r.add(images, TypeForbidden, "is only for %s: %s", pullPolicyField, pullPolicyList)
		return
	}
	for _, image := range images.items() {
		if problem := imagePatternProblem(image.text()); problem != "" {
			r.add(image, TypeInvalid, "%q %s", image.text(), problem)
		}
	}
}

// imagePatternProblem describes why the kubelet rejects an image pattern, or returns "". A pattern
// is an image without tag and digest, or a path that ends with /* for all images below.
func imagePatternProblem(pattern string) string {
	path, all := strings.CutSuffix(pattern, "/*")
	switch {
	case strings.TrimSpace(pattern) != pattern:
		return "has spaces around it"
	case pattern == "" || all && path == "":
		return "must name a registry at least"
	case strings.Contains(path, "*"):
		return "has a wildcard elsewhere than in /* at its end"
	case !all && (len(path) > longestImage || !imageForm.MatchString(path)):
		return "is not the name of an image without tag and digest, such as registry.example.com/team/image"
	}
	return ""
}
