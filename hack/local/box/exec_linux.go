// SPDX-License-Identifier: Apache-2.0

package box

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exec runs another command in all namespaces of the box, with its root and in a new session, and
// returns its exit. When ctx ends, Exec kills the command's process group and returns the error of
// ctx. The command also ends with the box.
func (p *Process) Exec(ctx context.Context, command Command) (Exit, error) {
	exit, err := p.exec(ctx, command)
	if err != nil {
		name := ""
		if len(command.Args) > 0 {
			name = command.Args[0]
		}
		return Exit{}, fmt.Errorf("executing %q in the box of %q: %w", name, p.spec.Args[0], err)
	}
	return exit, nil
}

func (p *Process) exec(ctx context.Context, command Command) (Exit, error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, context.Cause(ctx)
	}
	request := childRequest{Terminal: command.Terminal, Spec: Spec{
		Root: p.spec.Root, Args: command.Args, Env: command.Env, Dir: command.Dir,
		Capabilities: p.spec.Capabilities, Rlimits: p.spec.Rlimits,
	}}
	if command.Env == nil {
		request.Spec.Env = p.spec.Env
	}
	if command.Dir == "" {
		request.Spec.Dir = p.spec.Dir
	}
	if err := request.Spec.check(); err != nil {
		return Exit{}, err
	}
	files, err := openStreams(command.Stdin, command.Stdout, command.Stderr)
	if err != nil {
		return Exit{}, err
	}
	talk, err := openChildPipes()
	if err != nil {
		files.close()
		return Exit{}, err
	}
	child, err := p.join([]*os.File{files.child[0], files.child[1], files.child[2], talk.orderIn, talk.answerOut})
	if err != nil {
		files.close()
		talk.close()
		return Exit{}, p.replaceIfEnded(err)
	}
	files.startCopying()
	group := &processGroup{leader: child}
	stop := context.AfterFunc(ctx, group.kill)
	defer stop()
	if err := talk.exchange(request); err != nil {
		group.kill()
		group.wait()
		files.finishCopying()
		if ctx.Err() != nil {
			return Exit{}, context.Cause(ctx)
		}
		return Exit{}, p.replaceIfEnded(err)
	}
	exit := group.wait()
	files.finishCopying()
	if ctx.Err() != nil && exit.Signal == syscall.SIGKILL {
		return Exit{}, context.Cause(ctx)
	}
	return exit, nil
}

// replaceIfEnded replaces err with ErrEnded if the box has ended.
func (p *Process) replaceIfEnded(err error) error {
	if p.child.Signal(syscall.Signal(0)) != nil || isZombie(p.child) {
		return ErrEnded
	}
	return err
}

// isZombie reports whether a child has ended but is not collected yet.
func isZombie(child *os.Process) bool {
	ended := false
	_ = child.WithHandle(func(handle uintptr) {
		var info unix.Siginfo
		ended = unix.Waitid(unix.P_PIDFD, int(handle), &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil && info.Signo != 0
	})
	return ended
}

// processGroup is a process group that can be killed until its leader is collected: afterwards the
// id may be reused.
type processGroup struct {
	leader      *os.Process
	lock        sync.Mutex
	isCollected bool
}

func (g *processGroup) kill() {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.isCollected {
		return
	}
	// The leader has no group yet at its start.
	_ = unix.Kill(-g.leader.Pid, unix.SIGKILL)
	_ = g.leader.Kill()
}

func (g *processGroup) wait() Exit {
	_ = g.leader.WithHandle(func(handle uintptr) {
		for {
			var info unix.Siginfo
			if unix.Waitid(unix.P_PIDFD, int(handle), &info, unix.WEXITED|unix.WNOWAIT, nil) != unix.EINTR {
				return
			}
		}
	})
	g.lock.Lock()
	defer g.lock.Unlock()
	g.isCollected = true
	return waitForExit(g.leader)
}
