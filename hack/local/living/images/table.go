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

// Native is an image that is there as an executable.
type Native struct {
	// Repository is the name of the image without registry: any registry will do, for landscapes
	// name mirrors.
	Repository string
	// Executable is its name among the executables of this machine.
	Executable string
	// Path is where images of the repository have it.
	Path string
	// Minors are the minor versions (of major version 1) that the executable can be, the newest
	// first: it is of that one, and behaves as each other one when it is started with
	// --emulated-version. Empty for one whose version does not matter.
	Minors []int
	// Version is the one that it is; empty where it does not matter.
	Version string
}

// Table are the images of a machine.
type Table []Native

// emulated is how many minor versions before its own a server of Kubernetes can be
// (--emulated-version, KEP-4330).
const emulated = 3

// known are the images that an executable can stand for.
func known() Table {
	return Table{
		{Repository: "kube-apiserver", Executable: "kube-apiserver", Path: "/usr/local/bin/kube-apiserver", Minors: []int{}},
		{Repository: "kube-controller-manager", Executable: "kube-controller-manager", Path: "/usr/local/bin/kube-controller-manager", Minors: []int{}},
		{Repository: "kube-scheduler", Executable: "kube-scheduler", Path: "/usr/local/bin/kube-scheduler", Minors: []int{}},
		{Repository: "etcd-development/etcd", Executable: "etcd", Path: "/usr/local/bin/etcd"},
		{Repository: "coreos/etcd", Executable: "etcd", Path: "/usr/local/bin/etcd"},
		{Repository: "pergola", Executable: "pergola", Path: "/usr/bin/pergola"},
		// Pergola does their work. It finds its role by the configuration file, as it does where
		// its own image is named.
		{Repository: "gardener/resource-manager", Executable: "pergola", Path: "/usr/bin/pergola"},
		{Repository: "gardener/admission-controller", Executable: "pergola", Path: "/usr/bin/pergola"},
	}
}

// Of is the table of a machine that has executables, by their names: each of Kubernetes' servers is
// asked for its version. A name that is not known is the repository of an image, whose entrypoint
// is the executable, of any version.
func Of(ctx context.Context, executables map[string]string) (Table, error) {
	versions := map[string]string{}
	for name, file := range executables {
		if !slices.ContainsFunc(known(), func(n Native) bool { return n.Executable == name && n.Minors != nil }) {
			continue
		}
		out, err := exec.CommandContext(ctx, file, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("asking %s for its version: %w", file, err)
		}
		versions[name] = strings.TrimSpace(strings.TrimPrefix(string(out), "Kubernetes"))
	}
	return with(executables, versions)
}

// with is the table of those executables that there are.
func with(executables, versions map[string]string) (out Table, err error) {
	for _, n := range known() {
		if executables[n.Executable] == "" {
			continue
		}
		if n.Minors != nil {
			n.Version = versions[n.Executable]
			newest, err := minorOf(n.Version)
			if err != nil {
				return nil, fmt.Errorf("version of %s: %w", n.Executable, err)
			}
			for minor := newest; minor >= newest-emulated; minor-- {
				n.Minors = append(n.Minors, minor)
			}
		}
		out = append(out, n)
	}
	for _, name := range slices.Sorted(maps.Keys(executables)) {
		if slices.ContainsFunc(known(), func(n Native) bool { return n.Executable == name }) {
			continue
		}
		out = append(out, Native{Repository: Parse(name).Repository, Executable: name, Path: "/" + path.Base(name)})
	}
	return out, nil
}

// Image is a reference taken apart.
type Image struct{ Registry, Repository, Tag string }

// Parse takes a reference apart. A digest is left out: nothing here has one.
func Parse(reference string) Image {
	name, _, _ := strings.Cut(reference, "@")
	out := Image{Repository: name}
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		out.Repository, out.Tag = name[:i], name[i+1:]
	}
	// As container runtimes tell a registry from the first part of a repository.
	if first, rest, found := strings.Cut(out.Repository, "/"); found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		out.Registry, out.Repository = first, rest
	}
	return out
}

// minorOf is 36 of v1.36.3.
func minorOf(version string) (int, error) {
	match := regexp.MustCompile(`^v?1\.(\d+)(\.|$)`).FindStringSubmatch(version)
	if match == nil {
		return 0, fmt.Errorf("%q is no version 1.x", version)
	}
	return strconv.Atoi(match[1])
}

// Find gives the entry of an image, and the arguments that make its executable behave as the
// version that the image is of. The error says why there is none.
func (t Table) Find(reference string) (Native, []string, error) {
	image := Parse(reference)
	for _, n := range t {
		if !n.holds(image.Repository) {
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
	return Native{}, nil, fmt.Errorf("the machine has no executable for the image %s: it has %s", reference, strings.Join(t.names(), ", "))
}

// holds tells whether a repository is the one of the entry, maybe below the path of a mirror.
func (n Native) holds(repository string) bool {
	return repository == n.Repository || strings.HasSuffix(repository, "/"+n.Repository)
}

// names of the executables, each once.
func (t Table) names() []string {
	var out []string
	for _, n := range t {
		if !slices.Contains(out, n.Executable) {
			out = append(out, n.Executable)
		}
	}
	return out
}

// Pattern is a regular expression (RE2) that the references match that Find has an entry for, and
// no others: by it the API server sends pods to the nodes that can run them.
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
