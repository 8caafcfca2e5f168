// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Native is an image that exists as an executable.
type Native struct {
	// Repository is the name of the image without registry: every registry matches, because
	// landscapes use mirrors.
	Repository string
	// Executable is the name of the executable.
	Executable string
	// Path is the executable's path in images of the repository.
	Path string
	// Minors are the minor versions (of major version 1) that the executable supports, newest
	// first: its own, and older versions with --emulated-version. It is empty if the version does
	// not matter.
	Minors []int
	// Version is the executable's version; it is empty if it does not matter.
	Version string
}

// Table has the images of a machine.
type Table []Native

// maxEmulatedMinors is the number of older minor versions that a Kubernetes server can emulate
// (--emulated-version, KEP-4330).
const maxEmulatedMinors = 3

// knownImages returns all images that an executable can replace.
func knownImages() Table {
	return Table{
		{Repository: "kube-apiserver", Executable: "kube-apiserver", Path: "/usr/local/bin/kube-apiserver", Minors: []int{}},
		{Repository: "kube-controller-manager", Executable: "kube-controller-manager", Path: "/usr/local/bin/kube-controller-manager", Minors: []int{}},
		{Repository: "kube-scheduler", Executable: "kube-scheduler", Path: "/usr/local/bin/kube-scheduler", Minors: []int{}},
		{Repository: "etcd-development/etcd", Executable: "etcd", Path: "/usr/local/bin/etcd"},
		{Repository: "coreos/etcd", Executable: "etcd", Path: "/usr/local/bin/etcd"},
		{Repository: "pergola", Executable: "pergola", Path: "/usr/bin/pergola"},
		// Pergola replaces them. It finds its role by the configuration file, as with its own
		// image.
		{Repository: "gardener/resource-manager", Executable: "pergola", Path: "/usr/bin/pergola"},
		{Repository: "gardener/admission-controller", Executable: "pergola", Path: "/usr/bin/pergola"},
	}
}

func NewTable(ctx context.Context, executables map[string]string) (Table, error) {
	versions := map[string]string{}
	for name, file := range executables {
		if !slices.ContainsFunc(knownImages(), func(n Native) bool { return n.Executable == name && n.Minors != nil }) {
			continue
		}
		out, err := exec.CommandContext(ctx, file, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("asking %s for its version: %w", file, err)
		}
		versions[name] = strings.TrimSpace(strings.TrimPrefix(string(out), "Kubernetes"))
	}
	return availableImages(executables, versions)
}

// availableImages returns the table of the available executables. An unknown name is the repository
// of an image whose entrypoint is the executable, in any version.
func availableImages(executables, versions map[string]string) (out Table, err error) {
	for _, n := range knownImages() {
		if executables[n.Executable] == "" {
			continue
		}
		if n.Minors != nil {
			n.Version = versions[n.Executable]
			newest, err := minorOf(n.Version)
			if err != nil {
				return nil, fmt.Errorf("version of %s: %w", n.Executable, err)
			}
			for minor := newest; minor >= newest-maxEmulatedMinors; minor-- {
				n.Minors = append(n.Minors, minor)
			}
		}
		out = append(out, n)
	}
	for _, name := range slices.Sorted(maps.Keys(executables)) {
		if slices.ContainsFunc(knownImages(), func(n Native) bool { return n.Executable == name }) {
			continue
		}
		out = append(out, Native{Repository: Parse(name).Repository, Executable: name, Path: "/" + path.Base(name)})
	}
	return out, nil
}

// Reference is a parsed reference.
type Reference struct{ Registry, Repository, Tag string }

// Parse parses a reference and drops its digest: images here have none.
func Parse(reference string) Reference {
	name, _, _ := strings.Cut(reference, "@")
	out := Reference{Repository: name}
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		out.Repository, out.Tag = name[:i], name[i+1:]
	}
	// Container runtimes recognize a registry in the same way.
	if first, rest, found := strings.Cut(out.Repository, "/"); found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		out.Registry, out.Repository = first, rest
	}
	return out
}

// minorOf returns the minor version, for example 36 of v1.36.3.
func minorOf(version string) (int, error) {
	match := regexp.MustCompile(`^v?1\.(\d+)(\.|$)`).FindStringSubmatch(version)
	if match == nil {
		return 0, fmt.Errorf("%q is not a version 1.x", version)
	}
	return strconv.Atoi(match[1])
}

// Find returns the entry of an image, and the arguments that make its executable emulate the
// image's version. The error says why there is none.
func (t Table) Find(reference string) (Native, []string, error) {
	image := Parse(reference)
	for _, n := range t {
		if !n.hasRepository(image.Repository) {
			continue
		}
		if len(n.Minors) == 0 {
			return n, nil, nil
		}
		minor, err := minorOf(image.Tag)
		if err != nil || !slices.Contains(n.Minors, minor) {
			return Native{}, nil, fmt.Errorf("the machine has %s %s, which can be 1.%d to 1.%d, and not %q", n.Executable, n.Version, slices.Min(n.Minors), slices.Max(n.Minors), image.Tag)
		}
		if minor == n.Minors[0] {
			return n, nil, nil
		}
		return n, []string{fmt.Sprintf("--emulated-version=1.%d", minor)}, nil
	}
	return Native{}, nil, fmt.Errorf("the machine has no executable for the image %s: it has %s", reference, strings.Join(t.executableNames(), ", "))
}

// hasRepository reports whether the entry has a repository, possibly below the path of a mirror.
func (n Native) hasRepository(repository string) bool {
	return repository == n.Repository || strings.HasSuffix(repository, "/"+n.Repository)
}

// executableNames returns the names of the executables, each once.
func (t Table) executableNames() []string {
	var out []string
	for _, n := range t {
		if !slices.Contains(out, n.Executable) {
			out = append(out, n.Executable)
		}
	}
	return out
}

// Pattern returns a regular expression (RE2) that matches exactly the references that Find has an
// entry for. The API server uses it to send pods to the nodes that can run them.
func (t Table) Pattern() string {
	var one []string
	for _, n := range t {
		tag := `(:[\w.-]+)?`
		if len(n.Minors) > 0 {
			minors := make([]string, len(n.Minors))
			for i, minor := range n.Minors {
				minors[i] = strconv.Itoa(minor)
			}
			tag = `:v?1\.(` + strings.Join(minors, "|") + `)(\.[\w.-]*)?`
		}
		one = append(one, regexp.QuoteMeta(n.Repository)+tag)
	}
	return `^([\w.-]+(:[0-9]+)?/([\w./-]+/)?)?(` + strings.Join(one, "|") + `)(@[\w:+.-]+)?$`
}
