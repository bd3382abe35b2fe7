package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// relay is a moqmesh process that this program started.
type relay struct {
	cmd      *exec.Cmd
	dir      string
	port     int
	internal int
	log      bytes.Buffer
	done     chan struct{}
	once     sync.Once
}

const configuration = `drain_timeout = "0s"
[listen]
bind = "127.0.0.1:%d"
[listen.tls]
generate = ["localhost", "127.0.0.1"]
[internal]
listen = "127.0.0.1:%d"
[auth]
public = "**"
[log]
level = "warn"
`

// startRelay starts binary and waits until it serves.
func startRelay(ctx context.Context, binary, pin string) (_ *relay, err error) {
	r := &relay{done: make(chan struct{})}
	if r.port, err = freePort(); err != nil {
		return nil, err
	}
	if r.internal, err = freePort(); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp("", "moqmesh-bench-"); err != nil {
		return nil, err
	}
	file := filepath.Join(r.dir, "relay.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, r.port, r.internal), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.dir))
	}
	argv := []string{binary, "relay", file}
	if pin != "" {
		argv = append([]string{"taskset", "--cpu-list", pin}, argv...) // execs the rest, so the process id stays
	}
	r.cmd = exec.Command(argv[0], argv[1:]...)
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	if err := r.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.dir))
	}
	go func() {
		_ = r.cmd.Wait() // an early end shows in ready
		close(r.done)
	}()
	if err := r.ready(ctx); err != nil {
		r.stop()
		return nil, fmt.Errorf("%s: %w\n%s", binary, err, r.log.Bytes())
	}
	return r, nil
}

// ready waits for the health page: it answers once all sockets are bound.
func (r *relay) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/health", r.internal), nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.done:
			return errors.New("ended")
		case <-ctx.Done():
			return errors.New("not ready after 10 s")
		}
	}
}

func (r *relay) pid() int { return r.cmd.Process.Pid }

func (r *relay) url(quic bool) string {
	scheme := "https"
	if quic {
		scheme = "moqt"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d/", scheme, r.port)
}

// stop ends the process, with force if it takes more than three seconds.
func (r *relay) stop() {
	r.once.Do(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.done:
		case <-time.After(3 * time.Second):
			_ = r.cmd.Process.Kill()
			<-r.done
		}
		_ = os.RemoveAll(r.dir)
	})
}

// freePort finds a port that is free on UDP and TCP.
func freePort() (int, error) {
	for range 20 {
		u, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		addr := u.LocalAddr().String()
		l, err := net.Listen("tcp", addr)
		_ = u.Close()
		if err != nil {
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		return port, nil
	}
	return 0, errors.New("no free port")
}
