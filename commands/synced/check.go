// SPDX-License-Identifier: Apache-2.0

package synced

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

// ruleSync is the rule of findings about Landscape objects.
const ruleSync = "landscape/sync"

// Check returns findings about a Landscape object that an operator cannot sync or that has
// unintended settings. Other objects have no findings.
func Check(d *landscapes.Declaration) []schemas.Violation {
	c := &checker{declaration: d}
	c.run()
	return c.findings
}

// checker checks one object.
type checker struct {
	declaration *landscapes.Declaration
	findings    []schemas.Violation
}

func (c *checker) run() {
	if c.declaration.GroupVersionKind() != landscapev1alpha1.SchemeGroupVersion.WithKind("Landscape") {
		return // not parsed
	}
	object := &landscapev1alpha1.Landscape{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(c.declaration.Object().Object, object) != nil {
		return // the schema reports the wrong form
	}
	spec := &object.Spec
	for i, dependency := range spec.DependsOn {
		if dependency.Name == object.Name && object.Name != "" {
			c.addError(fmt.Sprintf("spec.dependsOn[%d].name", i), "is the Landscape itself, which would wait for itself forever; remove the entry")
		}
	}
	if spec.Source == nil || !sourceURLPattern.MatchString(spec.Source.URL) {
		return // a landscape.yaml, which has only settings
	}
	for _, at := range []struct {
		field string
		is    *metav1.Duration
		least time.Duration
	}{
		{"spec.interval", spec.Interval, 10 * time.Second},
		{"spec.retryInterval", spec.RetryInterval, time.Second},
		{"spec.source.interval", spec.Source.Interval, 10 * time.Second},
		{"spec.source.timeout", spec.Source.Timeout, time.Second},
	} {
		if at.is != nil && at.is.Duration < at.least {
			c.addWarning(at.field, fmt.Sprintf("%s is less than %s, which overloads most servers; write a time such as 1m", at.is.Duration, at.least))
		}
	}
	c.checkSource(spec.Source)
	c.checkNotifications(spec)
}

// The schema enforces these forms and reports values without them.
var (
	sourceURLPattern  = regexp.MustCompile(`^(https?|ssh|file|oci)://.+$`)
	commitHashPattern = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})?$`)
	digestPattern     = regexp.MustCompile(`^(sha256:[0-9a-f]{64})?$`)
)

func (c *checker) addError(field, message string) {
	place := c.declaration.Position(field)
	c.findings = append(c.findings, schemas.Violation{
		Severity: schemas.SeverityError, File: place.File, Line: place.Line, Column: place.Column, Kind: c.declaration.GroupVersionKind().Kind, Namespace: c.declaration.Namespace(), Name: c.declaration.Name(),
		Field: field, Type: schemas.TypeInvalid, Rule: ruleSync, Message: message,
	})
}

func (c *checker) addWarning(field, message string) {
	c.addError(field, message)
	c.findings[len(c.findings)-1].Severity = schemas.SeverityWarning
}

// checkSource checks spec.source.
func (c *checker) checkSource(from *landscapev1alpha1.Source) {
	field, err := sourceFault(from)
	if err != nil {
		message := err.Error()
		if rest, named := strings.CutPrefix(message, strings.TrimPrefix(field, "spec.source.")+" "); named {
			message = rest
		}
		c.addError(field, message)
		if location, err := url.Parse(from.URL); field == "spec.source.url" && (err != nil || location.User != nil && location.Scheme != "ssh") {
			c.declaration.HideLine(&c.findings[len(c.findings)-1])
		}
	}
	if location, err := url.Parse(from.URL); err == nil && forgePagePattern.MatchString(location.Path) && strings.HasPrefix(from.URL, "http") {
		c.addWarning("spec.source.url", "looks like the page of a folder on a forge; give the URL for git clone, the branch in ref.branch, and the folder in path")
	}
	switch clean := strings.TrimPrefix(path.Join("/", from.Path), "/"); {
	case path.Base(clean) == "landscape.yaml":
		c.addError("spec.source.path", "names a file; give the folder that has "+"landscape.yaml")
	case path.IsAbs(from.Path) || slices.Contains(strings.Split(from.Path, "/"), ".."):
		c.addWarning("spec.source.path", fmt.Sprintf("is relative to the repository, and is read as %q; write that", clean))
	}
	if ref := from.Ref; ref != nil {
		c.checkReference(*ref)
	}
}

// forgePagePattern matches URLs of a folder or file on GitHub, GitLab, Gitea and Bitbucket.
var forgePagePattern = regexp.MustCompile(`^/[^/]+/.+?(/-)?/(tree|blob|src/branch|src/tag|src/commit)/[^/]+`)

func (c *checker) checkReference(ref landscapev1alpha1.Reference) {
	const field = "spec.source.ref"
	ignored := func(name, value, other string) {
		if value != "" {
			c.addWarning(field+"."+name, fmt.Sprintf("has no effect together with %s; remove one of them", other))
		}
	}
	switch {
	case ref.Commit != "" || ref.Digest != "": // a branch and a tag beside them are allowed
		ignored("semver", ref.SemVer, "commit or digest")
	case ref.SemVer != "":
		ignored("tag", ref.Tag, "semver")
		ignored("branch", ref.Branch, "semver")
	case ref.Tag != "":
		ignored("branch", ref.Branch, "tag")
	}
	if isEmptyRange(ref.SemVer) {
		c.addError(field+".semver", "contains no version, so no tag ever matches; write a range such as \">=1.2.0 <2\"")
	}
	if name, isRemote := strings.CutPrefix(ref.Branch, "origin/"); isRemote {
		c.addWarning(field+".branch", fmt.Sprintf("is how clones name branch %s of the repository; write %s", name, name))
	}
}

// rangeVersionPattern matches a version in a range; parts may be omitted.
var rangeVersionPattern = regexp.MustCompile(`\d+(\.\d+)*(-[0-9A-Za-z.-]+)?`)

// isEmptyRange reports whether no version matches. If one does, a version at or next to an end of
// the range matches.
func isEmptyRange(text string) bool {
	if text == "" {
		return false
	}
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return false // the source reports the error
	}
	tried := []semver.Version{*semver.New(0, 0, 0, "", ""), *semver.New(99_999, 0, 0, "", "")}
	for _, end := range rangeVersionPattern.FindAllString(text, -1) {
		v, err := semver.NewVersion(end)
		if err != nil {
			return false
		}
		major, minor, patch := v.Major(), v.Minor(), v.Patch()
		tried = append(tried, *v, v.IncPatch(), v.IncMinor(), v.IncMajor(), *semver.New(major, minor, patch, "", ""), *semver.New(major, minor, patch+1, "0", ""),
			*semver.New(major, minor, max(patch, 1)-1, "", ""), *semver.New(major, max(minor, 1)-1, 99_999, "", ""), *semver.New(max(major, 1)-1, 99_999, 0, "", ""))
	}
	return !slices.ContainsFunc(tried, func(v semver.Version) bool { return constraint.Check(&v) })
}

// placeholderKey is a public key that replaces those in the cluster.
const placeholderKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f stand-in\n"

// sourceFault returns why the operator cannot open a source, and the field that causes it.
func sourceFault(from *landscapev1alpha1.Source) (string, error) {
	options := source.Options{URL: from.URL, Submodules: from.Submodules, Insecure: from.Insecure}
	if from.Ref != nil {
		options.Ref = *from.Ref
		if !commitHashPattern.MatchString(options.Ref.Commit) || !digestPattern.MatchString(options.Ref.Digest) {
			return "", nil
		}
	}
	if v := from.Verify; v != nil {
		options.Verify = &source.Verification{Mode: v.Mode, Keys: map[string][]byte{"key": []byte(placeholderKey)}}
		if !slices.Contains([]landscapev1alpha1.VerificationMode{"", landscapev1alpha1.VerifyHEAD, landscapev1alpha1.VerifyTag, landscapev1alpha1.VerifyTagAndHEAD}, v.Mode) {
			return "", nil
		}
	}
	if from.SecretRef != nil {
		if strings.HasPrefix(from.URL, "file:") {
			_, err := source.CredentialsOf(from.URL, nil)
			return "spec.source.secretRef", err
		}
		// Offline needs no SSH key.
		options.Credentials.BearerToken, options.Offline = "stand-in", true
	}
	open := func(change func(*source.Options)) error {
		changed := options
		change(&changed)
		remote, err := source.NewRemote(changed)
		if err == nil {
			err = remote.Close()
		}
		return err
	}
	err := open(func(*source.Options) {})
	if err == nil {
		return "", nil
	}
	if e, ok := errors.AsType[*source.Error](err); ok && e.Field != "" {
		return "spec.source." + e.Field, err
	}
	for _, without := range []struct {
		field  string
		change func(*source.Options)
	}{
		{"verify", func(o *source.Options) { o.Verify = nil }},
		{"submodules", func(o *source.Options) { o.Submodules = false }},
	} {
		if open(without.change) == nil {
			return "spec.source." + without.field, err
		}
	}
	return "spec.source.url", err
}

// checkNotifications checks the receivers of notifications.
func (c *checker) checkNotifications(spec *landscapev1alpha1.LandscapeSpec) {
	for i, n := range spec.Notifications {
		field := fmt.Sprintf("spec.notifications[%d]", i)
		switch n.Type {
		case landscapev1alpha1.NotifyCommitStatus:
			// The CRD rejects it, too, as it does a webhook without url.
			if n.Provider == "" {
				c.addError(field+".provider", "must be set for a commit status: github, gitlab, gitea or forgejo")
			}
			token := func(string) (map[string][]byte, error) { return map[string][]byte{"token": []byte("stand-in")}, nil }
			_, errs := notification.Destinations(spec.Source.URL, spec.Notifications[i:i+1], token)
			for _, err := range errs {
				c.addError(field, err.Error())
			}
		case landscapev1alpha1.NotifyWebhook:
			if n.URL == "" {
				c.addError(field+".url", "must be set for a webhook, such as https://chat.example.org/hook")
			}
			if n.Provider != "" {
				c.addWarning(field+".provider", "has no effect on a webhook; remove it, or write type: commitStatus")
			}
			if isPlainHTTP(n.URL) {
				c.addWarning(field+".url", "is plain HTTP, so others on the way can read and change the notification; use https")
			}
		}
	}
}

// isPlainHTTP reports whether an address uses plain HTTP outside the cluster and the machine.
func isPlainHTTP(address string) bool {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" {
		return false
	}
	host := at.Hostname()
	ip := net.ParseIP(host)
	return !(ip.IsLoopback() || ip == nil && !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".cluster.local"))
}
