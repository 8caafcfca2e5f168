// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientset "k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	internalapi "k8s.io/cri-api/pkg/apis"
	"k8s.io/klog/v2"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	kubeletoptions "k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
)

// Options configure a node.
type Options struct {
	// Name is the name of the Node, with its labels and taints.
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
	// Address is the address of the node, on an interface of this network namespace; the kubelet
	// serves there, on Port.
	Address string
	Port    int32
	// Certificate and Key are for serving; ClientCA signs clients of the kubelet.
	Certificate, Key, ClientCA string
	// Client has the connection to the API server, with the permissions of the node.
	Client *rest.Config
	// DNS is the address of the cluster's DNS server; Domain is the cluster's domain.
	DNS, Domain string
	// Folder has the volumes of pods; LogFolder has their output.
	Folder, LogFolder string
	// Machine is the reported size of the node.
	Machine Machine
	// Runtime and Images run the pods.
	Runtime internalapi.RuntimeService
	Images  internalapi.ImageManagerService
	Log     *slog.Logger
}

// maxFolderLength is the maximum length of Folder: the kubelet creates a socket in it (sockaddr_un
// of unix(7), 108 bytes).
const maxFolderLength = 107 - len("/pod-resources/kubelet.sock")

// Run runs the kubelet until the context ends. A process can have only one.
func Run(ctx context.Context, options Options) error {
	if len(options.Folder) > maxFolderLength {
		return fmt.Errorf("the path %s has %d bytes, and a kubelet supports at most %d: use a shorter state folder", options.Folder, len(options.Folder), maxFolderLength)
	}
	for _, folder := range []string{options.Folder, options.LogFolder} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return fmt.Errorf("creating a folder of the kubelet: %w", err)
		}
	}
	klog.SetSlogLogger(options.Log)
	server, err := configuration(options)
	if err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(server.FeatureGates); err != nil {
		return fmt.Errorf("feature gates of the kubelet: %w", err)
	}
	deps, err := kubeletapp.UnsecuredDependencies(ctx, server, utilfeature.DefaultFeatureGate)
	if err != nil {
		return fmt.Errorf("dependencies of the kubelet: %w", err)
	}
	if err := connect(ctx, deps, server, options); err != nil {
		return err
	}
	deps.PodStartupLatencyTracker, deps.NodeStartupLatencyTracker = kubeletutil.NewPodStartupLatencyTracker(), kubeletutil.NewNodeStartupLatencyTracker()
	deps.ContainerManager = cm.NewStubContainerManager()
	deps.CAdvisorInterface = &staticCadvisor{Machine: options.Machine, folder: options.Folder}
	deps.RemoteRuntimeService, deps.RemoteImageService = options.Runtime, options.Images
	if err := kubeletapp.RunKubelet(ctx, server, deps); err != nil {
		return fmt.Errorf("starting the kubelet: %w", err)
	}
	<-ctx.Done()
	return nil
}

// connect creates the kubelet's clients; the API server authorizes requests to the kubelet.
func connect(ctx context.Context, deps *kubelet.Dependencies, server *kubeletoptions.KubeletServer, options Options) (err error) {
	config := rest.CopyConfig(options.Client)
	config.QPS, config.Burst = float32(server.KubeAPIQPS), int(server.KubeAPIBurst)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if deps.KubeClient, err = clientset.NewForConfig(config); err != nil {
		return fmt.Errorf("creating the client of the kubelet: %w", err)
	}
	events := rest.CopyConfig(config)
	events.QPS, events.Burst = float32(server.EventRecordQPS), int(server.EventBurst)
	if deps.EventClient, err = typedcorev1.NewForConfig(events); err != nil {
		return fmt.Errorf("creating the client for events: %w", err)
	}
	heartbeat := rest.CopyConfig(config)
	heartbeat.Timeout, heartbeat.QPS = server.NodeStatusUpdateFrequency.Duration, -1
	if deps.HeartbeatClient, err = clientset.NewForConfig(heartbeat); err != nil {
		return fmt.Errorf("creating the client for heartbeats: %w", err)
	}
	auth, reload, err := kubeletapp.BuildAuth(types.NodeName(options.Name), deps.KubeClient, server.KubeletConfiguration)
	if err != nil {
		return fmt.Errorf("authentication of the kubelet: %w", err)
	}
	deps.Auth = auth
	reload(ctx.Done())
	return nil
}

// configuration returns the equivalent of a kubelet's configuration file and flags.
func configuration(options Options) (*kubeletoptions.KubeletServer, error) {
	flags := kubeletoptions.NewKubeletFlags()
	flags.RootDirectory, flags.CertDirectory, flags.HostnameOverride, flags.NodeIP = options.Folder, filepath.Join(options.Folder, "pki"), options.Name, options.Address
	flags.NodeLabels, flags.MaxPerPodContainerCount = options.Labels, 1
	c, err := kubeletoptions.NewKubeletConfiguration()
	if err != nil {
		return nil, fmt.Errorf("defaults of the kubelet: %w", err)
	}
	c.Address, c.Port, c.ReadOnlyPort, c.HealthzPort = options.Address, options.Port, 0, 0
	c.TLSCertFile, c.TLSPrivateKeyFile = options.Certificate, options.Key
	c.Authentication.Anonymous.Enabled, c.Authentication.Webhook.Enabled, c.Authentication.X509.ClientCAFile = false, true, options.ClientCA
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
	c.RegisterNode, c.RegisterWithTaints, c.ProviderID = true, options.Taints, "local://"+options.Name
	c.ClusterDNS, c.ClusterDomain, c.ResolverConfig = []string{options.DNS}, options.Domain, ""
	c.PodLogsDir, c.MaxPods = options.LogFolder, 250
	c.KubeAPIQPS, c.KubeAPIBurst, c.EventRecordQPS, c.EventBurst = 50, 100, 50, 100
	// changed Secrets reach the volumes in this time, not in a minute
	c.SyncFrequency = metav1.Duration{Duration: 10 * time.Second}
	c.ShutdownGracePeriod, c.ShutdownGracePeriodCriticalPods = metav1.Duration{}, metav1.Duration{}
	// There are no cgroups, and other programs of the machine must not cause evictions.
	c.CgroupsPerQOS, c.EnforceNodeAllocatable, c.FailSwapOn, c.LocalStorageCapacityIsolation = false, nil, false, false
	c.EvictionHard, c.ImageGCHighThresholdPercent, c.ImageGCLowThresholdPercent = nil, 100, 99
	c.MakeIPTablesUtilChains, c.EnableControllerAttachDetach = false, false
	c.FeatureGates = map[string]bool{
		"KubeletInUserNamespace": true,
		// Containers that depend on each other crash until all run: retry after a second at first,
		// not ten.
		"ReduceDefaultCrashLoopBackOffDecay": true,
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil, fmt.Errorf("asking for the limit of open files: %w", err)
	}
	c.MaxOpenFiles = int64(min(files.Max, 1<<20)) // the hard limit
	return &kubeletoptions.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *c}, nil
}
