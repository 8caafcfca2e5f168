// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"regexp"
	"strings"
)

const (
	pullPolicyField     = "imagePullCredentialsVerificationPolicy"
	pullPolicyGate      = "KubeletEnsureSecretPulledImages"
	pullPolicyAllowlist = "NeverVerifyAllowlistedImages"
	maxImageLength      = 255
)

// imagePattern is the name of an image without tag and digest: an optional registry, with or
// without a port, and a path.
var imagePattern = regexp.MustCompile(`^((` + registryHost + `(\.` + registryHost + `)*|\[[a-fA-F0-9:]+\])(:[0-9]+)?/)?` + imagePathPart + `(/` + imagePathPart + `)*$`)

const (
	registryHost  = `([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`
	imagePathPart = `[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*`
)

// checkPullPolicyVersion rejects the policy for a kubelet that does not support it.
func (r *findingCollector) checkPullPolicyVersion(config fieldValue, version string) {
	if minor := minorOf(version); config.lookup(pullPolicyField).isSet() && minor > 0 && minor < 35 {
		r.add(config.lookup(pullPolicyField), TypeForbidden, "Kubernetes 1.%d does not have it; it exists since Kubernetes 1.35", minor)
	}
}

// checkPullPolicy checks the images on a node for which the kubelet verifies the credentials of
// pods.
func (r *findingCollector) checkPullPolicy(config fieldValue) {
	policy, images := config.lookup(pullPolicyField), config.lookup("preloadedImagesVerificationAllowlist")
	if gate := config.lookup("featureGates", pullPolicyGate); policy.isSet() && gate.isSet() && !gate.isTrue() {
		r.add(policy, TypeForbidden, "needs the feature gate %s, which %s turns off: the kubelet would not start", pullPolicyGate, gate.path)
	}
	if !images.isSet() {
		return
	}
	if policy.text() != pullPolicyAllowlist {
		r.add(images, TypeForbidden, "is only for %s: %s", pullPolicyField, pullPolicyAllowlist)
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
		return "has a wildcard other than /* at its end"
	case !all && (len(path) > maxImageLength || !imagePattern.MatchString(path)):
		return "is not the name of an image without tag and digest, such as registry.example.com/team/image"
	}
	return ""
}
