package peerlist

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
)

// TestUnreadableFile: a file that could not be read is read again soon, though nothing has happened to it.
func TestUnreadableFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers.json")
	if err := os.WriteFile(file, []byte(`["https://a/"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := ParseSource(file)
	if err != nil {
		t.Fatal(err)
	}
	applied := make(chan []cluster.Entry, 1)
	w := New(Config{Source: source, Apply: func(list []cluster.Entry) { applied <- list }})
	var reads atomic.Int32
	w.read = func(name string) ([]byte, error) {
		if reads.Add(1) == 1 {
			return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
		}
		return readFile(name)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(t.Context())
	}()
	t.Cleanup(func() { <-done }) // the context has ended by then
	select {
	case list := <-applied:
		if len(list) != 1 {
			t.Errorf("%d peers", len(list))
		}
	case <-time.After(20 * time.Second):
		t.Error("the list is never read again")
	}
}
