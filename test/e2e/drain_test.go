//go:build e2e

package e2e

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestDrain stops a relay that serves a viewer who stays: it waits for the deadline (1 s here) and exits with 0.
func TestDrain(t *testing.T) {
	r := drive.StartRelay(t, "relay")
	drive.Start(t, "pub", binary(t), "pub", r.MOQT(), "demo", "--hash", r.Hash)
	sub := drive.Start(t, "sub", binary(t), "sub", r.MOQT(), "demo", "--hash", r.Hash, "--seconds", "60")
	sub.Expect(t, "second", 10*time.Second)
	begin := time.Now()
	r.Signal(t, syscall.SIGTERM)
	code := r.Wait(t, 4*time.Second)
	if took := time.Since(begin); code != 0 || took < 800*time.Millisecond {
		t.Errorf("exit status %d after %v, want 0 after the drain of 1 s", code, took)
	}
}

// TestIdleDrain stops a relay without sessions: it exits at once.
func TestIdleDrain(t *testing.T) {
	r := drive.StartRelay(t, "relay")
	begin := time.Now()
	r.Signal(t, syscall.SIGINT)
	code := r.Wait(t, 4*time.Second)
	if took := time.Since(begin); code != 0 || took > 700*time.Millisecond {
		t.Errorf("exit status %d after %v", code, took)
	}
}

// TestSecondSignal cuts a drain short.
func TestSecondSignal(t *testing.T) {
	t.Setenv("MOQ_DRAIN_TIMEOUT", "60s")
	r := drive.StartRelay(t, "relay")
	drive.Start(t, "pub", binary(t), "pub", r.MOQT(), "demo", "--hash", r.Hash)
	drive.WaitFor(t, 5*time.Second, "session", func() bool {
		return r.Metric(t, "moq_relay_sessions_opened_total") > 0
	})
	r.Signal(t, syscall.SIGTERM)
	time.Sleep(300 * time.Millisecond)
	select {
	case <-r.Done():
		t.Fatal("the relay did not wait for its session")
	default:
	}
	r.Signal(t, syscall.SIGTERM)
	if code := r.Wait(t, 2*time.Second); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestServiceManager: the relay says that it is ready once its pages answer, and that it stops.
func TestServiceManager(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	t.Setenv("NOTIFY_SOCKET", socket)
	told := func() string {
		var b [64]byte
		if err := l.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := l.Read(b[:])
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	r := drive.StartRelay(t, "relay")
	if got := told(); got != "READY=1" {
		t.Errorf("told %q", got)
	}
	r.Signal(t, syscall.SIGTERM)
	if got := told(); got != "STOPPING=1" {
		t.Errorf("told %q", got)
	}
	if code := r.Wait(t, 4*time.Second); code != 0 {
		t.Errorf("exit status %d", code)
	}
}
