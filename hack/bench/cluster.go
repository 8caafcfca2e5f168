package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
)

// cluster is an API server with an etcd of its own.
type cluster struct {
	Kubeconfig      string
	APIServer, Etcd int // process ids
}

// start brings up etcd and an API server with a state folder of their own.
func (s settings) start(ctx context.Context, state string) (cluster, error) {
	cmd := exec.CommandContext(ctx, s.local, "up", "--dir", state, "--clusters", "bench", "--parts", "apiserver", "--json")
	cmd.Stderr = s.log
	out, err := cmd.Output()
	if err != nil {
		return cluster{}, fmt.Errorf("start the API server: %w", err)
	}
	type part struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	var status struct {
		Shared   []part `json:"shared"`
		Clusters []struct {
			Name       string `json:"name"`
			Kubeconfig string `json:"kubeconfig"`
			Parts      []part `json:"parts"`
		} `json:"clusters"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return cluster{}, fmt.Errorf("status of the API server: %w", err)
	}
	for _, c := range status.Clusters {
		if c.Name != "bench" {
			continue
		}
		started := cluster{Kubeconfig: c.Kubeconfig}
		for _, p := range append(status.Shared, c.Parts...) {
			switch p.Name {
			case "etcd":
				started.Etcd = p.PID
			case "kube-apiserver":
				started.APIServer = p.PID
			}
		}
		return started, nil
	}
	return cluster{}, errors.New("no cluster bench in the status of the API server")
}

// stop ends the processes and removes their data, also when the bench was interrupted.
func (s settings) stop(state string) error {
	out, err := exec.Command(s.local, "clean", "--dir", state).CombinedOutput()
	if err != nil {
		return fmt.Errorf("stop the API server: %w\n%s", err, tail(string(out)))
	}
	return nil
}
