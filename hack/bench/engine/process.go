package main

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

// process is a controller that runs.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// start begins a process; its output goes to a file.
func start(log string, env []string, command ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(os.Environ(), env...), file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// stop asks it to end, and waits.
func (p *process) stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(time.Minute):
	case <-ctx.Done():
	}
	return errors.Join(errors.New("the controller does not end"), p.cmd.Process.Kill())
}

// during is a context that ends with the process, too.
func (p *process) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.ended:
			cancel(p.alive())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// alive is an error once the process has ended, which it must not by itself.
func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the controller has ended: %w", errors.Join(p.err, errors.New("its output is in the log")))
	default:
		return nil
	}
}

// idle waits until the process has nothing to do any more, and gives when that began: it uses next to no CPU time for a second.
func (p *process) idle(ctx context.Context) (time.Time, error) {
	const still, tolerated = time.Second, 0.02
	since, before := time.Now(), -1.0
	for {
		if err := p.alive(); err != nil {
			return since, err
		}
		now, err := cpuSeconds(p.cmd.Process.Pid)
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

// cpuSeconds that a process has used so far; the kernel counts in hundredths.
func cpuSeconds(pid int) (float64, error) {
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

// forgetPeak makes the kernel begin anew with the peak of memory.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// memory of a process.
type memory struct {
	// peak is the largest resident memory since it was forgotten.
	peak int64
	// own is that without the pages of files, which are mostly the program itself: the kernel shares them and drops them at will.
	own int64
}

func memoryOf(pid int) (memory, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	sizes := map[string]int64{}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		if value, ok := strings.CutSuffix(strings.TrimSpace(value), " kB"); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return memory{}, fmt.Errorf("/proc/%d/status, %s: %w", pid, name, err)
			}
			sizes[name] = n << 10
		}
	}
	if sizes["VmHWM"] == 0 {
		return memory{}, fmt.Errorf("/proc/%d/status does not tell the peak", pid)
	}
	return memory{peak: sizes["VmHWM"], own: sizes["VmHWM"] - sizes["RssFile"]}, nil
}
