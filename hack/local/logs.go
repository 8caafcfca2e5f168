// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/restclient"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// logsCommand is for machines without kubectl; `kubectl logs` prints the same.
func logsCommand(where *folderFlags) *cobra.Command {
	var container string
	var follow, previous bool
	var tail int
	command := &cobra.Command{
		Use:   "logs CLUSTER NAMESPACE/POD",
		Short: "Print the output of a living pod",
		Example: `  local logs runtime garden/virtual-garden-etcd-main-0
  local logs local shoot--local--local/kube-apiserver-7c9f-x2x4q -f --tail 20`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, pod, found := strings.Cut(args[1], "/")
			if !found || namespace == "" || pod == "" {
				return fmt.Errorf("%q is not NAMESPACE/POD", args[1])
			}
			if tail < -1 {
				return fmt.Errorf("--tail %d: use a number of lines, or -1 for all", tail)
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
			if c == nil {
				return fmt.Errorf("there is no cluster %q in %s", args[0], manager.Dir)
			}
			client, err := manager.Client(c)
			if err != nil {
				return err
			}
			path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", url.PathEscape(namespace), url.PathEscape(pod))
			if err := checkPodLogs(cmd.Context(), client, c, path, args[1]); err != nil {
				return err
			}
			query := url.Values{}
			for name, value := range map[string]string{"container": container, "follow": boolParameter(follow), "previous": boolParameter(previous)} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if tail >= 0 {
				query.Set("tailLines", strconv.Itoa(tail))
			}
			return client.Stream(cmd.Context(), path+"/log?"+query.Encode(), cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&container, "container", "c", "", "container; needed only where a pod has several")
	flags.BoolVarP(&follow, "follow", "f", false, "follow the log until the container ends")
	flags.BoolVarP(&previous, "previous", "p", false, "show the log from before the last restart")
	flags.IntVar(&tail, "tail", -1, "number of last lines; -1 for all")
	return command
}

// checkPodLogs returns an error that says why a pod has no logs: only pods that run print
// something.
func checkPodLogs(ctx context.Context, client *restclient.Client, c *statedir.Cluster, path, name string) error {
	var pod struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	switch err := client.Get(ctx, path, &pod); {
	case restclient.IsNotFound(err):
		return fmt.Errorf("there is no pod %s in cluster %s", name, c.Name)
	case err != nil:
		return err
	case pod.Spec.NodeName == "":
		return fmt.Errorf("pod %s has no logs: it has no node yet", name)
	case !cluster.IsLivingNode(c, pod.Spec.NodeName):
		return fmt.Errorf("pod %s has no logs: it is played on node %s, and no process of it runs", name, pod.Spec.NodeName)
	}
	return nil
}

func boolParameter(set bool) string {
	if set {
		return "true"
	}
	return ""
}
