// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running controller.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts a process; its output goes to a file.
func Start(log string, env []string, command ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &Process{cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(os.Environ(), env...), file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Stop asks the process to end, and waits.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(time.Minute):
	case <-ctx.Done():
	}
	return errors.Join(errors.New("the controller does not end"), p.cmd.Process.Kill())
}

// ContextUntilExit returns a context that also ends with the process.
func (p *Process) ContextUntilExit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.done:
			cancel(p.CheckAlive())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process at once; it does nothing if the process has ended.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Result returns the whole CPU time of a process that has ended, and its error.
func (p *Process) Result() (cpuSeconds float64, err error) {
	state := p.cmd.ProcessState
	return (state.UserTime() + state.SystemTime()).Seconds(), p.err
}

// CheckAlive returns an error once the process has ended, which it must not do unless the benchmark
// stops it.
func (p *Process) CheckAlive() error {
	select {
	case <-p.done:
		return fmt.Errorf("the controller has ended: %w", errors.Join(p.err, errors.New("its output is in the log")))
	default:
		return nil
	}
}

// WaitUntilIdle waits until the process uses next to no CPU time for a second, and returns the
// start of that second.
func (p *Process) WaitUntilIdle(ctx context.Context) (time.Time, error) {
	const still, tolerated = time.Second, 0.02
	since, before := time.Now(), -1.0
	for {
		if err := p.CheckAlive(); err != nil {
			return since, err
		}
		now, err := CPUSeconds(p.cmd.Process.Pid)
		if err != nil {
			return since, err
		}
		if before < 0 || now-before > tolerated {
			since, before = time.Now(), now
		} else if time.Since(since) > still {
			return since, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return since, fmt.Errorf("it does not become idle: %w", ctx.Err())
		}
	}
}

// CPUSeconds returns the CPU time that a process has used so far; the kernel counts in hundredths.
func CPUSeconds(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the program is in parentheses and may have spaces.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks float64
	for _, text := range fields[11:13] {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return ticks / 100, nil
}

// ResetPeak resets the kernel's peak of a process's memory.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// Memory is the memory of a process in bytes.
type Memory struct {
	// Peak is the largest resident memory since ResetPeak.
	Peak int64
	// WithoutFilePages is Peak without pages of files, which are mostly the program itself: the
	// kernel shares them and drops them at will.
	WithoutFilePages int64
	// Now is the resident memory at this moment.
	Now int64
}

// ReadMemory reads the memory of a process from /proc.
func ReadMemory(pid int) (Memory, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	sizes := map[string]int64{}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		if value, ok := strings.CutSuffix(strings.TrimSpace(value), " kB"); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return Memory{}, fmt.Errorf("/proc/%d/status, %s: %w", pid, name, err)
			}
			sizes[name] = n << 10
		}
	}
	if sizes["VmHWM"] == 0 {
		return Memory{}, fmt.Errorf("/proc/%d/status has no peak", pid)
	}
	return Memory{Peak: sizes["VmHWM"], WithoutFilePages: sizes["VmHWM"] - sizes["RssFile"], Now: sizes["VmRSS"]}, nil
}
