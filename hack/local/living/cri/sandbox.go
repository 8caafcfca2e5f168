// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is the shared part of a pod's containers. The runtime's mutex guards the mutable fields.
type sandbox struct {
	id        string
	config    *runtimeapi.PodSandboxConfig
	created   int64
	ready     bool
	hostNet   bool
	address   netip.Addr
	namespace Namespace
	// hostname is the hostname of its containers.
	hostname string
}

// isHostNetwork reports whether the pod uses the network namespace of the node.
func isHostNetwork(config *runtimeapi.PodSandboxConfig) bool {
	return config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
}

// RunPodSandbox creates the network namespace, the address and the files of a pod.
func (r *Runtime) RunPodSandbox(_ context.Context, config *runtimeapi.PodSandboxConfig, handler string) (id string, err error) {
	if handler != "" {
		return "", unsupportedError(fmt.Sprintf("handler %q", handler))
	}
	s := &sandbox{id: newID(), config: config, created: r.options.Clock.Now().UnixNano(), ready: true, hostNet: isHostNetwork(config), hostname: config.GetHostname()}
	defer func() {
		if err != nil {
			_ = r.removeNetwork(s)
			_ = os.RemoveAll(r.folder(s.id))
		}
	}()
	if err := os.MkdirAll(r.folder(s.id), 0o700); err != nil {
		return "", fmt.Errorf("creating the folder of the pod: %w", err)
	}
	if s.hostname == "" {
		if s.hostname, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("asking for the name of the host: %w", err)
		}
	}
	for file, text := range map[string]string{"resolv.conf": resolvConf(config.GetDnsConfig()), "hostname": s.hostname + "\n"} {
		if err := os.WriteFile(filepath.Join(r.folder(s.id), file), []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("writing /etc/%s of the pod: %w", file, err)
		}
	}
	if !s.hostNet {
		if s.address, err = r.addresses.allocate(); err != nil {
			return "", err
		}
		if s.namespace, err = r.options.Network.Add(s.id, s.address); err != nil {
			return "", fmt.Errorf("creating the network of the pod: %w", err)
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.sandboxes[s.id] = s
	return s.id, nil
}

// removeNetwork removes the network of a pod.
func (r *Runtime) removeNetwork(s *sandbox) error {
	if s.namespace != nil {
		if err := s.namespace.Close(); err != nil {
			return fmt.Errorf("removing the network of the pod: %w", err)
		}
		s.namespace = nil
	}
	if s.address.IsValid() {
		r.addresses.free(s.address)
		s.address = netip.Addr{}
	}
	return nil
}

// resolvConf returns the content of a pod's /etc/resolv.conf.
func resolvConf(c *runtimeapi.DNSConfig) string {
	var b strings.Builder
	for _, server := range c.GetServers() {
		fmt.Fprintf(&b, "nameserver %s\n", server)
	}
	if len(c.GetSearches()) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(c.GetSearches(), " "))
	}
	if len(c.GetOptions()) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(c.GetOptions(), " "))
	}
	return b.String()
}

// sandbox returns the sandbox with this id.
func (r *Runtime) sandbox(id string) (*sandbox, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if s := r.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, notFound("pod sandbox", id)
}

// listSandboxes returns all sandboxes, newest first, as kubelets expect.
func (r *Runtime) listSandboxes() []*sandbox {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	out := make([]*sandbox, 0, len(r.sandboxes))
	for _, s := range r.sandboxes {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *sandbox) int { return cmp.Compare(b.created, a.created) })
	return out
}

// StopPodSandbox kills all processes of a pod and removes its network. A missing pod counts as
// stopped.
func (r *Runtime) StopPodSandbox(_ context.Context, id string) error {
	s, err := r.sandbox(id)
	if err != nil {
		return nil
	}
	for _, c := range r.containersOf(id) {
		c.kill()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s.ready = false
	return r.removeNetwork(s)
}

// RemovePodSandbox removes a pod and its files. A missing pod counts as removed.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if _, err := r.sandbox(id); err != nil {
		return nil
	}
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	for _, c := range r.containersOf(id) {
		if err := r.RemoveContainer(ctx, c.id); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(r.folder(id)); err != nil {
		return fmt.Errorf("removing the folder of the pod: %w", err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.sandboxes, id)
	return nil
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

// PodSandboxStatus returns the state of a pod and its address.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	out := &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created, Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		Network: &runtimeapi.PodSandboxNetworkStatus{},
		Linux:   &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}
	if s.address.IsValid() {
		out.Network.Ip = s.address.String()
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: out, Timestamp: r.options.Clock.Now().UnixNano()}, nil
}

// ListPodSandbox returns the pods that match the filter.
func (r *Runtime) ListPodSandbox(_ context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	var out []*runtimeapi.PodSandbox
	for _, s := range r.listSandboxes() {
		r.mutex.Lock()
		state := s.state()
		r.mutex.Unlock()
		if filter.GetId() != "" && filter.GetId() != s.id || filter.GetState() != nil && filter.GetState().GetState() != state || !hasLabels(filter.GetLabelSelector(), s.config.GetLabels()) {
			continue
		}
		out = append(out, &runtimeapi.PodSandbox{Id: s.id, Metadata: s.config.GetMetadata(), State: state, CreatedAt: s.created, Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations()})
	}
	return out, nil
}

// hasLabels reports whether labels contain all of wanted.
func hasLabels(wanted, labels map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}
