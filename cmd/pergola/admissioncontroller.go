// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/webhook/admission"
	"github.com/pergola-dev/pergola/controllers/webhook/authorizer"
	gardenwebhooks "github.com/pergola-dev/pergola/controllers/webhook/garden"
	"github.com/pergola-dev/pergola/internal/addresses"
	"github.com/pergola-dev/pergola/internal/unknown"
)

// admissionCommand holds the flags of the server.
type admissionCommand struct {
	configFile, kubeconfig, virtualKubeconfig, address, certFile, keyFile, caFile string
	port, healthPort, metricsPort                                                 int
	log                                                                           logFlags
	selfSigned, hasAuthorizers, allowUnselectedLists                              bool
	certificateNames                                                              []string
	shutdownDelay                                                                 time.Duration
}

// defaultShutdownDelay is the default --shutdown-delay of a server with replicas behind a Service.
const defaultShutdownDelay = 3 * time.Second

func newAdmissionController() *cobra.Command {
	var s admissionCommand
	cmd := &cobra.Command{
		Use:   "admission-controller",
		Short: "Serve the rules and defaults as admission webhooks, and the authorizers of gardenlets",
		Long: `Serves admission webhooks for API servers. POST /validate decides whether a change is allowed, with
the findings of pergola validate. POST /default sets the defaults of an object. "configuration"
prints the webhook configurations of an API server.

With --virtual-kubeconfig, the server reads the objects around a changed object in the virtual
garden. It then checks the rules across the landscape, and takes versions, images and networks from
the cloud profile and the Seed.

With --virtual-kubeconfig, POST /webhooks/auth/seed and /webhooks/auth/shoot authorize gardenlets
and extensions of a seed or of a self-hosted Shoot in the virtual garden. /readyz lists the objects
that they must read first. The webhooks of gardener-admission-controller answer at its paths below
/webhooks, for the configurations that the catalogue registers.

With --kubeconfig for the runtime cluster (default in a pod: its own access), the server also
rejects a second Garden. While a Garden exists, it rejects the deletion of the namespace garden.

Restart the server after a change of a kubeconfig. It reads --tls-cert-file and
--tls-private-key-file again when they change. /healthz, /readyz and /metrics are on --health-port,
without TLS.

--config reads the configuration file of gardener-admission-controller (kind
AdmissionControllerConfiguration). Flags take precedence over it.`,
		Example: `  pergola admission-controller --kubeconfig runtime.yaml --tls-cert-file tls.crt --tls-private-key-file tls.key
  pergola admission-controller --bind-address 127.0.0.1 --self-signed --ca-file ca.crt
  pergola admission-controller configuration --cluster runtime --url https://127.0.0.1:2750 --ca-file ca.crt | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.configFile, "config", "", "configuration file")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig of the runtime cluster with the Gardens (default in a pod: its own access; else none)")
	flags.StringVar(&s.virtualKubeconfig, "virtual-kubeconfig", "", "kubeconfig of the virtual garden with the objects around a changed one, such as cloud profiles and Seeds (default: none)")
	flags.BoolVar(&s.hasAuthorizers, "authorizers", true, "with --virtual-kubeconfig: authorize gardenlets and extensions in the virtual garden")
	flags.BoolVar(&s.allowUnselectedLists, "unselected-lists", false, "let gardenlets and extensions read all Seeds, Shoots, backups, bastions, installations and ManagedSeeds without a field or label selector, as upstream does")
	flags.StringVar(&s.address, "bind-address", "", "address to listen on (default: all)")
	flags.IntVar(&s.port, "port", 2750, "port of the webhooks")
	flags.IntVar(&s.healthPort, flagHealthPort, 2751, "port of /healthz, /readyz and /metrics; 0 or -1 for none")
	s.log.register(cmd)
	flags.StringVar(&s.certFile, "tls-cert-file", "", "certificate of the server and its intermediate certificates, as PEM")
	flags.StringVar(&s.keyFile, "tls-private-key-file", "", "key of the certificate, as PEM")
	flags.BoolVar(&s.selfSigned, "self-signed", false, "make a CA and a certificate for this process, valid for localhost and --bind-address")
	flags.StringArrayVar(&s.certificateNames, "self-signed-name", nil, "additional host name or address for --self-signed, such as the name of a Service; may be given several times")
	flags.StringVar(&s.caFile, "ca-file", "", "file to write the CA of --self-signed to")
	flags.DurationVar(&s.shutdownDelay, flagShutdownDelay, 0, "how long to answer new requests after a termination signal, with /readyz failing, until Services use another server (default with --config: "+defaultShutdownDelay.String()+")")
	cmd.AddCommand(newAdmissionConfiguration())
	return cmd
}

func (s *admissionCommand) run(cmd *cobra.Command) error {
	settings, err := s.readSettings(cmd)
	if err != nil {
		return err
	}
	log, err := s.log.logger(cmd)
	if err != nil {
		return err
	}
	config, err := s.config()
	if err != nil {
		return err
	}
	// The caches live until the last request is answered. Before the server starts, a signal ends
	// them.
	alive, end := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer end()
	begun := context.AfterFunc(cmd.Context(), end)
	opts := admission.Options{Log: log}
	var authorizers *authorizer.Handler
	if config != nil {
		if opts.Gardens, err = admission.NewLiveGardens(config); err != nil {
			return err
		}
	}
	if s.virtualKubeconfig != "" {
		virtual, err := clientcmd.BuildConfigFromFlags("", s.virtualKubeconfig)
		if err != nil {
			return fmt.Errorf("--virtual-kubeconfig %s: %w", s.virtualKubeconfig, addresses.RedactError(err))
		}
		if opts.ObjectLister, err = admission.NewWatchedObjects(alive, virtual); err != nil {
			return fmt.Errorf("--virtual-kubeconfig %s: %w", s.virtualKubeconfig, err)
		}
		if s.hasAuthorizers {
			if authorizers, err = authorizer.New(alive, virtual, authorizer.Options{AllowUnselectedReads: s.allowUnselectedLists, Log: log}); err != nil {
				return fmt.Errorf("--virtual-kubeconfig %s: %w", s.virtualKubeconfig, err)
			}
			reader, err := gardenwebhooks.NewReader(virtual, opts.ObjectLister)
			if err != nil {
				return fmt.Errorf("--virtual-kubeconfig %s: %w", s.virtualKubeconfig, err)
			}
			opts.ExtraResponders = gardenwebhooks.New(gardenwebhooks.Options{Garden: reader, Authorizers: authorizers, SizeLimits: settings.Server.ResourceAdmissionConfiguration, Log: log})
		}
	}
	certificates, err := s.certificates(log)
	if err != nil {
		return err
	}
	server := &admission.Server{Certificates: certificates, ShutdownDelay: s.shutdownDelay, Log: log}
	webhooks, err := admission.New(alive, opts)
	if err != nil {
		return err
	}
	server.Handler = webhooks
	if authorizers != nil {
		server.Handler, server.Metrics, server.Ready = newServerMux(webhooks, authorizers), prometheus.Gatherers{webhooks.Metrics(), authorizers.Metrics()}, authorizers.Ready
	}
	if server.Webhooks, err = s.listen(cmd.Context(), s.port); err != nil {
		return err
	}
	defer func() { _ = server.Webhooks.Close() }()
	health := "none"
	if s.healthPort > 0 {
		if server.Health, err = s.listen(cmd.Context(), s.healthPort); err != nil {
			return err
		}
		defer func() { _ = server.Health.Close() }()
		health = server.Health.Addr().String()
	}
	if s.metricsPort > 0 && s.metricsPort != s.healthPort {
		if server.MetricsOnly, err = s.listen(cmd.Context(), s.metricsPort); err != nil {
			return err
		}
		defer func() { _ = server.MetricsOnly.Close() }()
	}
	log.Info("serving", "webhooks", server.Webhooks.Addr().String(), "health", health, "gardens", opts.Gardens != nil, "surroundings", opts.ObjectLister != nil, "authorizers", authorizers != nil, "version", version)
	begun()
	if err := server.Run(cmd.Context()); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// newServerMux serves the webhooks, and the authorizers below authorizer.Path.
func newServerMux(webhooks, authorizers http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(authorizer.Path, authorizers)
	mux.Handle("/", webhooks)
	return mux
}

func (s *admissionCommand) listen(ctx context.Context, port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(s.address, strconv.Itoa(port)))
}

// config returns the access to the runtime cluster, or nil without one.
func (s *admissionCommand) config() (*rest.Config, error) {
	if s.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig %s: %w", s.kubeconfig, addresses.RedactError(err))
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	// ErrNotExist: a pod without a token
	if errors.Is(err, rest.ErrNotInCluster) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return config, err
}

func (s *admissionCommand) certificates(log *slog.Logger) (admission.CertificateFunc, error) {
	files := s.certFile != "" || s.keyFile != ""
	switch {
	case files && s.selfSigned:
		return nil, errors.New("--self-signed and --tls-cert-file exclude each other")
	case files && (s.certFile == "" || s.keyFile == ""):
		return nil, errors.New("--tls-cert-file and --tls-private-key-file need each other")
	case files:
		return admission.CertificatesFromFiles(s.certFile, s.keyFile, log, clock.RealClock{})
	case !s.selfSigned:
		return nil, errors.New("API servers call webhooks over TLS: give --tls-cert-file and --tls-private-key-file, or --self-signed and --ca-file")
	case s.caFile == "":
		return nil, errors.New("--self-signed needs --ca-file, the file to write the CA for webhook configurations to")
	}
	names := []string{"localhost", "127.0.0.1", "::1"}
	if s.address != "" && !slices.Contains(names, s.address) {
		names = append(names, s.address)
	}
	return admission.SelfSignedCertificates(append(names, s.certificateNames...), s.caFile)
}

func newAdmissionConfiguration() *cobra.Command {
	var cluster, url, service, caFile, output string
	clusters := []string{string(admission.ClusterRuntime), string(admission.ClusterVirtual)}
	cmd := &cobra.Command{
		Use:   "configuration",
		Short: "Print the webhook configurations of a cluster",
		Long: `Prints the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration that make a cluster
call this server. Both fail closed: while the server is down, the objects they select cannot be
changed. They do not select Secrets and ConfigMaps.`,
		Example: `  pergola admission-controller configuration --cluster runtime --url https://127.0.0.1:2750 --ca-file ca.crt
  pergola admission-controller configuration --cluster virtual --service garden/pergola-admission-controller --ca-file ca.crt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(clusters, cluster) {
				return fmt.Errorf("--cluster: %w", unknown.NameError("cluster with webhooks", cluster, clusters))
			}
			target, err := admissionTarget(url, service, caFile)
			if err != nil {
				return err
			}
			return printConfigurations(cmd, admission.Cluster(cluster), target, output)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cluster, "cluster", clusters[0], "cluster that calls the webhooks: "+strings.Join(clusters, ", "))
	_ = cmd.RegisterFlagCompletionFunc("cluster", cobra.FixedCompletions(clusters, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&url, "url", "", "address of the server for the cluster, as https://HOST:PORT")
	flags.StringVar(&service, "service", "", "Service of the server in the cluster, instead of --url, as NAMESPACE/NAME or NAMESPACE/NAME:PORT")
	flags.StringVar(&caFile, "ca-file", "", "CA of the server's certificate, as PEM (default: the CAs that the host of the API server trusts)")
	addOutputFlag(cmd, &output, "yaml", formatJSON)
	return cmd
}

// admissionTarget parses the address of the server.
func admissionTarget(url, service, caFile string) (admission.Target, error) {
	target := admission.Target{URL: url}
	if service != "" {
		namespace, rest, ok := strings.Cut(service, "/")
		name, port, ported := strings.Cut(rest, ":")
		if !ok || namespace == "" || name == "" {
			return target, fmt.Errorf("--service %q: want NAMESPACE/NAME or NAMESPACE/NAME:PORT", service)
		}
		target.Service = &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}
		if ported {
			number, err := strconv.ParseUint(port, 10, 16)
			if err != nil || number == 0 {
				return target, fmt.Errorf("--service %q: the port must be a number from 1 to 65535", service)
			}
			target.Service.Port = new(int32(number))
		}
	}
	if caFile != "" {
		data, err := os.ReadFile(caFile)
		if err != nil {
			return target, fmt.Errorf("--ca-file: %w", err)
		}
		if _, err := certutil.ParseCertsPEM(data); err != nil {
			return target, fmt.Errorf("--ca-file %s: %w", caFile, err)
		}
		target.CABundle = data
	}
	return target, nil
}

func printConfigurations(cmd *cobra.Command, cluster admission.Cluster, target admission.Target, output string) error {
	validating, err := admission.ValidatingWebhookConfiguration(cluster, target)
	if err != nil {
		return err
	}
	mutating, err := admission.MutatingWebhookConfiguration(cluster, target)
	if err != nil {
		return err
	}
	if output == formatJSON {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{validating, mutating}})
	}
	for _, object := range []any{validating, mutating} {
		data, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("writing a configuration: %w", err)
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}
