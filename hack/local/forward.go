// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/hold"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// forwardCommand exposes one Service on a port of the machine, for programs that cannot use a
// proxy.
func forwardCommand(where *folderFlags) *cobra.Command {
	var port int
	command := &cobra.Command{
		Use:   "forward CLUSTER NAMESPACE/SERVICE:PORT",
		Short: "Forward a port of this machine's loopback device to a Service until the clusters stop, and print it",
		Example: `  local forward runtime garden/pergola-operator:9292
  local forward local shoot--local--local/kube-apiserver:443 --port 16443`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			service, servicePort, err := parseServicePort(args[1])
			if err != nil {
				return err
			}
			if port < 0 || port > 65535 {
				return fmt.Errorf("--port %d: use 1 to 65535, or 0 for a free port", port)
			}
			manager, err := where.manager(os.Stderr)
			if err != nil {
				return err
			}
			state, err := manager.Dir.Load()
			if err != nil {
				return err
			}
			c := state.Cluster(args[0])
			holder, err := hold.Find(string(manager.Dir))
			switch {
			case err != nil:
				return err
			case c == nil:
				return fmt.Errorf("there is no cluster %q in %s", args[0], manager.Dir)
			case holder == nil || c.Kubelets == 0:
				return fmt.Errorf("cluster %s has no living pods: \"up --pods run\" starts them", c.Name)
			}
			client, err := manager.Client(c)
			if err != nil {
				return err
			}
			var found struct {
				Spec struct {
					ClusterIP string          `json:"clusterIP"`
					Ports     []portOfService `json:"ports"`
				} `json:"spec"`
			}
			namespace, name, _ := strings.Cut(service, "/")
			if err := client.Get(cmd.Context(), fmt.Sprintf("/api/v1/namespaces/%s/services/%s", url.PathEscape(namespace), url.PathEscape(name)), &found); err != nil {
				return err
			}
			if net.ParseIP(found.Spec.ClusterIP) == nil {
				return fmt.Errorf("the Service %s has no address of its own (clusterIP: %s)", service, found.Spec.ClusterIP)
			}
			if err := checkServicePort(found.Spec.Ports, servicePort); err != nil {
				return fmt.Errorf("the Service %s %w", service, err)
			}
			if port == 0 {
				if port, err = statedir.FreePort(state.Ports()); err != nil {
					return err
				}
			}
			if err := holder.Forward(cmd.Context(), port, net.JoinHostPort(found.Spec.ClusterIP, strconv.Itoa(servicePort))); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "127.0.0.1:%d\n", port)
			return err
		},
	}
	command.Flags().IntVar(&port, "port", 0, "port of this machine; 0 for a free port")
	return command
}

// portOfService is a port of a Service.
type portOfService struct {
	Name     string `json:"name"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

// checkServicePort returns an error that lists the TCP ports unless wanted is one of them.
func checkServicePort(ports []portOfService, wanted int) error {
	var all []string
	for _, p := range ports {
		if p.Protocol != "TCP" {
			continue
		}
		if p.Port == wanted {
			return nil
		}
		text := strconv.Itoa(p.Port)
		if p.Name != "" {
			text += " (" + p.Name + ")"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return errors.New("has no TCP port")
	}
	return fmt.Errorf("has no TCP port %d: it has %s", wanted, strings.Join(all, ", "))
}

// parseServicePort parses NAMESPACE/SERVICE:PORT.
func parseServicePort(text string) (service string, port int, err error) {
	service, number, found := strings.Cut(text, ":")
	namespace, name, slash := strings.Cut(service, "/")
	port, err = strconv.Atoi(number)
	if !found || !slash || namespace == "" || name == "" || err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q is not NAMESPACE/SERVICE:PORT", text)
	}
	return service, port, nil
}
