// Package drive runs the built relay, its tools and foreign clients as processes, for tests that use them the way a
// user does.
package drive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Env returns a variable that the Makefile sets; without it there is nothing to test.
func Env(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: run this tier through make", name)
	}
	return v
}

// FreePort finds a loopback port that is free on UDP and on TCP.
func FreePort(t *testing.T) int {
	t.Helper()
	for range 20 {
		u, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := u.LocalAddr().(*net.UDPAddr).Port
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		u.Close()
		if err != nil {
			continue
		}
		l.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}

// WaitFor polls until ok says so; it fails the test after limit.
func WaitFor(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, limit)
}

// Event is one JSON line that a process printed.
type Event map[string]any

// Name is the kind of event.
func (e Event) Name() string { s, _ := e["ev"].(string); return s }

// Number returns a numeric field, 0 if there is none.
func (e Event) Number(field string) float64 { v, _ := e[field].(float64); return v }

// Process is a child whose output is kept and read line by line.
type Process struct {
	Name string
	Cmd  *exec.Cmd

	done chan struct{}
	err  error

	mu             sync.Mutex
	events         []Event
	stdout, stderr bytes.Buffer
}

// Start runs a command until the test ends; it is then asked to stop, and killed five seconds later. Its output is
// logged if the test has failed.
func Start(t *testing.T, name, command string, args ...string) *Process {
	t.Helper()
	p := &Process{Name: name, Cmd: exec.Command(command, args...), done: make(chan struct{})}
	stdout, err := p.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Cmd.Stderr = lockedWriter{p}
	if err := p.Cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go p.read(stdout)
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("--- %s: %v\n%s%s", name, p.err, tail(p.Stdout()), tail(p.Stderr()))
		}
	})
	return p
}

func tail(s string) string {
	if len(s) > 6000 {
		return "…" + s[len(s)-6000:]
	}
	return s
}

type lockedWriter struct{ p *Process }

func (w lockedWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.p.stderr.Write(b)
}

func (p *Process) read(r io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e Event
		p.mu.Lock()
		p.stdout.Write(lines.Bytes())
		p.stdout.WriteByte('\n')
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			p.events = append(p.events, e)
		}
		p.mu.Unlock()
	}
	p.err = p.Cmd.Wait()
}

// Stdout and Stderr are what the process has written so far.
func (p *Process) Stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// Stderr is the other half.
func (p *Process) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// Signal sends a signal to a running process.
func (p *Process) Signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
}

// Stop asks the process to end (SIGTERM) and waits; after five seconds it is killed.
func (p *Process) Stop() {
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
}

// Kill ends the process without a goodbye.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.done
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the process to end by itself and returns its exit status.
func (p *Process) Wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("%s did not end within %v", p.Name, limit)
		return -1
	}
}

// Find returns the events of a name seen so far.
func (p *Process) Find(name string) (found []Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Name() == name {
			found = append(found, e)
		}
	}
	return found
}

// Expect waits for the first event of a name.
func (p *Process) Expect(t *testing.T, name string, limit time.Duration) Event {
	t.Helper()
	ended := false
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if found := p.Find(name); len(found) > 0 {
			return found[0]
		}
		if ended {
			t.Fatalf("%s ended (%v) without %q", p.Name, p.err, name)
		}
		select {
		case <-p.done:
			ended = true
		default:
		}
	}
	t.Fatalf("%s: no %q within %v", p.Name, name, limit)
	return nil
}
