// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

const usage = `usage:
  traces record DIR COMMAND [ARG…]   runs a command whose API servers write audit logs into a new folder
  traces summarize DIR               prints the traces of Pergola's writes in these logs
  traces compare OLD [OLD…] NEW      prints the differences of these traces; exit code 1 if there are any
`

func main() {
	to := bufio.NewWriter(os.Stdout)
	differ, err := run(os.Args[1:], to)
	if ended := to.Flush(); err == nil {
		err = ended
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	if differ || err != nil {
		os.Exit(1)
	}
}

// run reports whether traces differ.
func run(args []string, to io.Writer) (differ bool, err error) {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch {
	case command == "record" && len(args) > 2:
		return false, record(args[1], args[2:])
	case command == "summarize" && len(args) == 2:
		events, err := readLogs(args[1])
		if err == nil {
			summarize(events).print(to)
		}
		return false, err
	case command == "compare" && len(args) > 2:
		var recordings []traces
		for _, path := range args[1:] {
			content, err := os.ReadFile(path)
			if err != nil {
				return false, err
			}
			recordings = append(recordings, parseTraces(string(content)))
		}
		last := len(recordings) - 1
		differences := compare(recordings[:last], recordings[last])
		for _, d := range differences {
			fmt.Fprintln(to, d)
		}
		fmt.Fprintf(to, "%d differ (how often a line repeats is not compared)\n", len(differences))
		return len(differences) > 0, nil
	}
	return false, fmt.Errorf("no such command\n%s", usage)
}
