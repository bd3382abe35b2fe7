package filewatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/internal/filewatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expect waits until the reader of the news would see the text.
func expect(t *testing.T, w *filewatch.Watcher, file, text string) {
	t.Helper()
	limit := time.After(5 * time.Second)
	for {
		select {
		case <-w.Changes():
			if b, _ := os.ReadFile(file); string(b) == text {
				return
			}
		case <-limit:
			t.Fatalf("no news of %q within 5 s", text)
		}
	}
}

// TestChanges (faults 5): every way to change a file is noticed, and again the second and third time.
func TestChanges(t *testing.T) {
	replace := func(t *testing.T, file, text string) {
		write(t, file+".new", text)
		must(t, os.Rename(file+".new", file))
	}
	tests := map[string]struct {
		file   func(dir string) string
		setup  func(t *testing.T, dir string)
		change func(t *testing.T, dir string, round int, text string)
	}{
		"in place": {
			change: func(t *testing.T, dir string, _ int, text string) { write(t, dir+"/f", text) },
		},
		"rename over it": {
			change: func(t *testing.T, dir string, _ int, text string) { replace(t, dir+"/f", text) },
		},
		"remove and make": {
			change: func(t *testing.T, dir string, _ int, text string) {
				must(t, os.Remove(dir+"/f"))
				time.Sleep(50 * time.Millisecond)
				write(t, dir+"/f", text)
			},
		},
		"the directory goes and comes": {
			file:  func(dir string) string { return dir + "/d/f" },
			setup: func(t *testing.T, dir string) { must(t, os.Mkdir(dir+"/d", 0o700)) },
			change: func(t *testing.T, dir string, _ int, text string) {
				must(t, os.RemoveAll(dir+"/d"))
				must(t, os.Mkdir(dir+"/d", 0o700))
				write(t, dir+"/d/f", text)
			},
		},
		"link to a directory, beside the file": { // as Kubernetes does it
			setup: func(t *testing.T, dir string) { must(t, os.Symlink("data/f", dir+"/f")) },
			change: func(t *testing.T, dir string, round int, text string) {
				sub := fmt.Sprintf("%s/v%d", dir, round)
				must(t, os.Mkdir(sub, 0o700))
				write(t, sub+"/f", text)
				must(t, os.Symlink(sub, dir+"/tmp"))
				must(t, os.Rename(dir+"/tmp", dir+"/data"))
			},
		},
		"link to a directory, above the file": {
			file: func(dir string) string { return dir + "/current/f" },
			change: func(t *testing.T, dir string, round int, text string) {
				sub := fmt.Sprintf("%s/v%d", dir, round)
				must(t, os.Mkdir(sub, 0o700))
				write(t, sub+"/f", text)
				must(t, os.Symlink(sub, dir+"/tmp"))
				must(t, os.Rename(dir+"/tmp", dir+"/current"))
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "f")
			if tt.file != nil {
				file = tt.file(dir)
			}
			if tt.setup != nil {
				tt.setup(t, dir)
			}
			if name != "link to a directory, above the file" && name != "link to a directory, beside the file" {
				write(t, file, "begin")
			}
			w := filewatch.New(file)
			defer w.Close()
			for round := range 3 {
				text := fmt.Sprintf("round %d", round)
				tt.change(t, dir, round, text)
				expect(t, w, file, text)
			}
		})
	}
}

// TestHalves: two writes in a row are one piece of news, and a restless directory does not put it off for ever.
func TestHalves(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	w := filewatch.New(file)
	defer w.Close()
	write(t, file, "half")
	time.Sleep(200 * time.Millisecond)
	write(t, file, "half and half")
	<-w.Changes()
	if b, _ := os.ReadFile(file); string(b) != "half and half" {
		t.Errorf("told too early: %q", b)
	}
	stop := time.After(4 * time.Second)
	for i := 0; ; i++ {
		select {
		case <-w.Changes():
			return
		case <-stop:
			t.Fatal("no news of a file that changes all the time")
		case <-time.After(50 * time.Millisecond):
			write(t, file, fmt.Sprint(i))
		}
	}
}
