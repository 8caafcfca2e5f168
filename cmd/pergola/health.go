package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/render"
)

func newHealth() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Judge the health of objects by Gardener's rules",
		Long: `Reads objects as a cluster serves them (YAML or JSON, several documents) and prints their verdicts: healthy and
progressing by Gardener's rules, status in kstatus terms. Exit code 1 says that one is not healthy, 2 that there was no object to judge.`,
		Example: `  kubectl get deployment -n garden -o yaml | pergola health
  pergola health -f object.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, in := "<stdin>", cmd.InOrStdin()
			if file != "" && file != "-" {
				f, err := os.Open(file)
				if err != nil {
					return err
				}
				defer f.Close()
				name, in = file, f
			}
			data, err := io.ReadAll(in)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			objects, err := render.DecodeYAML(name, data)
			if err != nil {
				return err
			}
			if len(objects) == 0 {
				return fmt.Errorf("no objects read from %s: give objects in YAML or JSON, such as kubectl get -o yaml prints; what printed nothing has most likely failed", name)
			}
			return printVerdicts(cmd, objects, output)
		},
	}
	outputFlag(cmd, &output, "json", "text")
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file to read (default: standard input)")
	return cmd
}

func printVerdicts(cmd *cobra.Command, objects []render.Object, output string) error {
	verdicts := []health.Verdict{}
	healthy := true
	for _, o := range objects {
		v := health.Check(o.Unstructured)
		healthy = healthy && v.Healthy
		verdicts = append(verdicts, v)
	}
	if output == "json" {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		if err := enc.Encode(verdicts); err != nil {
			return err
		}
	} else {
		for _, v := range verdicts {
			state := "healthy"
			if !v.Healthy {
				state = "unhealthy"
			}
			if v.Progressing {
				state += ", progressing"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s: %s %s %s\n", v.Kind, v.Namespace, v.Name, state, v.Reason, v.Message)
		}
	}
	if !healthy {
		return errFinding
	}
	return nil
}
