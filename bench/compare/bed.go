package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moqmesh/moqmesh/bench"
)

// Names of the two relays.
const (
	ours = "moqmesh"
	rust = "Rust"
)

// kind is a relay that can be started.
type kind struct {
	name    string
	binary  string
	lead    []string // arguments before the flags, which both have in common
	env     string
	version string
}

// line is one run, as the record has it.
type line struct {
	Relay   string        `json:"relay"`
	Version string        `json:"version"`
	Case    string        `json:"case"`
	Time    int64         `json:"t"` // Unix seconds
	Error   string        `json:"error,omitempty"`
	Result  *bench.Result `json:"result,omitempty"`
}

// bed is where the runs are made.
type bed struct {
	*settings
	dir   string
	cert  certificate
	lines []line // of this process
}

func newBed(s *settings) (*bed, error) {
	dir, err := os.MkdirTemp("", "moqmesh-compare-")
	if err != nil {
		return nil, err
	}
	b := &bed{settings: s, dir: dir}
	if b.cert, err = newCertificate(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

func (b *bed) close() { _ = os.RemoveAll(b.dir) }

// turns makes all runs. Cases are the inner loop and relays the innermost, so that a slow minute of the machine hits both.
func (b *bed) turns(ctx context.Context, kinds []kind) error {
	for range b.repeats {
		for _, c := range b.cases {
			for _, k := range kinds {
				if _, err := b.one(ctx, k, c, c.name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// one makes one run and records it. A run that fails is a line with an error; the error returned says that there is no
// point in going on.
func (b *bed) one(ctx context.Context, k kind, c testCase, name string) (line, error) {
	l := line{Relay: k.name, Version: k.version, Case: name, Time: time.Now().Unix()}
	result, err := b.run(ctx, k, c)
	if ctx.Err() != nil {
		return l, context.Cause(ctx)
	}
	if err != nil {
		l.Error = err.Error()
	} else {
		l.Result = result
	}
	b.lines = append(b.lines, l)
	fmt.Fprintln(os.Stderr, l.brief())
	return l, b.keep(l)
}

// keep adds a line to the record.
func (b *bed) keep(l line) error {
	if b.record == "" {
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(b.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// run starts the relays of a case, loads them, and ends them.
func (b *bed) run(ctx context.Context, k kind, c testCase) (_ *bench.Result, err error) {
	nodes, err := b.startAnew(ctx, k, c.links)
	if err != nil {
		return nil, err
	}
	defer stopAll(nodes)
	args := append([]string{"bench"}, c.args(nodes)...)
	if c.media() {
		args = append(args, "--window", b.window.String())
	}
	args = append(args, "--json", "--root", b.cert.authority)
	for _, n := range nodes {
		args = append(args, "--pid", strconv.Itoa(n.pid()))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, errRun)
	defer cancel()
	cmd := b.command(b.loadCPU, append([]string{b.moqmesh}, args...))
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	profiled := b.profiling(ctx, nodes[0], c.name)
	err = cmd.Wait()
	stop()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var r bench.Result
	if json.Unmarshal(out.Bytes(), &r) != nil || r.Mode == "" { // faults of the relay are in the result
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	if err := <-profiled; err != nil {
		return nil, err
	}
	return &r, nil
}

const runLimit = 3 * time.Minute

var errRun = fmt.Errorf("no result after %v", runLimit)

// command is a process on one core.
func (b *bed) command(cpu string, argv []string) *exec.Cmd {
	argv = append([]string{"taskset", "--cpu-list", cpu}, argv...) // which becomes the command, so the process id stays
	if b.realtime {
		argv = append([]string{"chrt", "--rr", "1"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// node is a relay process.
type node struct {
	cmd      *exec.Cmd
	port     int
	internal string // address of the listener with the profiles, if wanted
	log      bytes.Buffer
	done     chan struct{}
}

// startAttempts is how often relays are started if one of them ends at once: a port that was free may have been taken
// before the relay asked for it.
const startAttempts = 3

// startAnew starts the relays of a case. None is left behind if it fails.
func (b *bed) startAnew(ctx context.Context, k kind, links [][]int) (nodes []*node, err error) {
	for range startAttempts {
		if nodes, err = b.start(ctx, k, links); err == nil {
			return nodes, nil
		}
		stopAll(nodes)
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return nil, err
}

func stopAll(nodes []*node) {
	for _, n := range nodes {
		n.stop()
	}
}

// start starts one relay per entry of links, each of which lists the relays that it dials. What was started is returned in
// any case.
func (b *bed) start(ctx context.Context, k kind, links [][]int) (nodes []*node, err error) {
	for range links {
		port, err := freePort()
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, &node{port: port, done: make(chan struct{})})
	}
	for i, n := range nodes {
		argv := append([]string{k.binary}, k.lead...)
		argv = append(argv, "--listen", fmt.Sprintf("127.0.0.1:%d", n.port), "--listen-tls-cert", b.cert.file,
			"--listen-tls-key", b.cert.key, "--connect-tls-root", b.cert.authority, "--auth-public", "**",
			"--cluster-id", strconv.Itoa(1000+i))
		if b.profiles != "" {
			if n.internal, err = freeAddress(); err != nil {
				return nodes[:i], err
			}
			argv = append(argv, "--internal-listen", n.internal)
		}
		for _, peer := range links[i] {
			argv = append(argv, "--cluster-connect", nodes[peer].url())
		}
		n.cmd = b.command(b.relayCPU, argv)
		n.cmd.Stdout, n.cmd.Stderr = &n.log, &n.log
		if k.env != "" {
			n.cmd.Env = append(os.Environ(), k.env)
		}
		if err := n.cmd.Start(); err != nil {
			close(n.done)
			return nodes[:i], err
		}
		go func() {
			_ = n.cmd.Wait() // an early end shows in ready
			close(n.done)
		}()
		if err := b.confine(n.pid()); err != nil {
			return nodes, err
		}
	}
	for _, n := range nodes {
		if err := n.ready(ctx); err != nil {
			return nodes, fmt.Errorf("%s: %w", k.binary, err)
		}
	}
	return nodes, sleep(ctx, settle(len(nodes)))
}

// confine moves a process into the control group of the relays, if there is one.
func (b *bed) confine(pid int) error {
	if b.cgroup == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(b.cgroup, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

// settle is how long relays get before the load: links have to be made.
func settle(n int) time.Duration {
	if n > 1 {
		return 1500 * time.Millisecond
	}
	return 300 * time.Millisecond
}

func (n *node) pid() int { return n.cmd.Process.Pid }

func (n *node) url() string { return fmt.Sprintf("https://127.0.0.1:%d/", n.port) }

var errEnded = errors.New("ended")

// ready waits until the UDP port is bound.
func (n *node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("the port is not bound after 10 s"))
	defer cancel()
	for {
		select {
		case <-n.done:
			return fmt.Errorf("%w: %s", errEnded, strings.TrimSpace(n.log.String()))
		default:
		}
		bound, err := n.bound()
		if err != nil || bound {
			return err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// bound looks whether somebody has the port, without taking it.
func (n *node) bound() (bool, error) {
	for _, table := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		text, err := os.ReadFile(table)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
		if udpBound(text, n.port) {
			return true, nil
		}
	}
	return false, nil
}

// udpBound looks for a local port in a table of the kernel: sl local_address rem_address ...
func udpBound(table []byte, port int) bool {
	want := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 2 && strings.HasSuffix(f[1], want) {
			return true
		}
	}
	return false
}

// stop ends the process, with force if it takes more than three seconds.
func (n *node) stop() {
	if n.cmd == nil || n.cmd.Process == nil {
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.done:
	case <-time.After(3 * time.Second):
		_ = n.cmd.Process.Kill()
		<-n.done
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// freePort finds a UDP port that is free.
func freePort() (int, error) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).Port, nil
}

// certificate is a key pair for loopback and who signed it, as files.
type certificate struct{ authority, file, key string }

func newCertificate(dir string) (certificate, error) {
	c := certificate{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	return c, c.issue()
}
