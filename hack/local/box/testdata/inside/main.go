// SPDX-License-Identifier: Apache-2.0

// Command inside is what the tests of package box run in a box: Args[1] says what it does and
// prints.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	arg := func(n int) string {
		if n < len(os.Args) {
			return os.Args[n]
		}
		return ""
	}
	switch arg(1) {
	case "exit":
		code, _ := strconv.Atoi(arg(2))
		os.Exit(code)
	case "about":
		about()
	case "ls":
		entries, err := os.ReadDir(arg(2))
		check(err)
		for _, entry := range entries {
			fmt.Println(entry.Name())
		}
	case "files":
		files()
	case "read":
		data, err := os.ReadFile(arg(2))
		check(err)
		os.Stdout.Write(data)
	case "write":
		check(os.WriteFile(arg(2), []byte(arg(3)), 0o600))
	case "copy":
		_, err := io.Copy(os.Stdout, os.Stdin)
		check(err)
	case "both":
		fmt.Println("out")
		fmt.Fprintln(os.Stderr, "err")
	case "listen":
		listener, err := net.Listen("tcp", arg(2))
		check(err)
		listener.Close()
		fmt.Println("listened")
	case "term":
		// Told to end by SIGTERM it says so, and exits with 7.
		received := make(chan os.Signal, 1)
		signal.Notify(received, syscall.SIGTERM)
		fmt.Println("waiting")
		<-received
		fmt.Println("terminated")
		os.Exit(7)
	case "hang":
		fmt.Println("waiting")
		hang()
	case "raise":
		number, _ := strconv.Atoi(arg(2))
		signal.Reset()
		check(syscall.Kill(os.Getpid(), syscall.Signal(number)))
		hang()
	case "spawn":
		// The child gets all files of this process and hangs. With "leave" this process ends before
		// it.
		child := exec.Command(os.Args[0], "hang")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		check(child.Start())
		fmt.Println("spawned")
		if arg(2) != "leave" {
			hang()
		}
	case "orphans":
		orphans()
	case "terminal":
		stat, err := os.ReadFile("/proc/self/stat")
		check(err)
		fmt.Println("has a controlling terminal:", strings.Fields(string(stat))[6] != "0")
		// Not gone before that is read: the end of a session takes away what is not.
		_, err = os.Stdin.Read(make([]byte, 1))
		check(err)
	case "pid":
		fmt.Println(os.Getpid())
	case "processes":
		entries, err := filepath.Glob("/proc/[0-9]*")
		check(err)
		fmt.Println(len(entries))
	case "chatter":
		for range 1000 {
			fmt.Println(strings.Repeat("x", 1000))
		}
	default:
		check(fmt.Errorf("cannot %q", os.Args))
	}
}

func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

func about() {
	host, err := os.Hostname()
	check(err)
	folder, err := os.Getwd()
	check(err)
	session, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	var files syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	fmt.Printf("pid %d\nsession %d\nuid %d\nhostname %s\ndir %s\nhard limit of files %d\n", os.Getpid(), session, os.Getuid(), host, folder, files.Max)
	fmt.Printf("env %q\n", os.Environ())
	status, err := os.ReadFile("/proc/self/status")
	check(err)
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "SigBlk") {
			fmt.Print(strings.Join(strings.Fields(line), " "), "\n")
		}
	}
}

// files prints what is open.
func files() {
	entries, err := os.ReadDir("/proc/self/fd")
	check(err)
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		// The one that the folder was read by is closed again; epoll and eventfd are the Go
		// runtime's.
		if err == nil && !strings.HasPrefix(target, "anon_inode:") {
			fmt.Println(entry.Name())
		}
	}
}

// orphans leaves a process behind that ends, and waits until it is collected by process 1.
func orphans() {
	middle := exec.Command(os.Args[0], "spawn", "leave")
	out, err := middle.StdoutPipe()
	check(err)
	check(middle.Start())
	buffer := make([]byte, len("spawned\nwaiting\n"))
	_, err = io.ReadFull(out, buffer)
	check(err)
	check(middle.Wait())
	orphan := 0
	for pid := 2; pid < 100 && orphan == 0; pid++ {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "hang") {
			orphan = pid
		}
	}
	check(syscall.Kill(orphan, syscall.SIGKILL))
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if syscall.Kill(orphan, 0) == syscall.ESRCH {
			fmt.Println("collected")
			return
		}
	}
	fmt.Println("not collected")
}
