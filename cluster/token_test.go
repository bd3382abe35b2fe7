package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moqmesh/moqmesh/cluster"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenTokenFile(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		text string
		ok   bool
	}{
		"token":      {"a.b-c_d\n", true},
		"empty":      {"", false},
		"blank":      {" \n\t", false},
		"two lines":  {"SECRET\nSECRET", false},
		"not for us": {"SECRET&admin=1", false},
		"too large":  {strings.Repeat("S", 64<<10+1), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			write(t, path, tt.text)
			_, err := cluster.OpenTokenFile(path)
			if (err == nil) != tt.ok || err != nil && strings.Contains(err.Error(), "SECRET") {
				t.Errorf("error %v", err)
			}
		})
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := cluster.OpenTokenFile(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

// TestTokenFileKeepsTheLastGoodToken (C8): a file that becomes unusable changes nothing and is reported once.
func TestTokenFileKeepsTheLastGoodToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, "one")
	f, err := cluster.OpenTokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := func(token string, changed, failed bool) {
		t.Helper()
		got, ch, err := f.Token()
		if got != token || ch != changed || (err != nil) != failed {
			t.Fatalf("got %q, changed %v, error %v; want %q, %v, %v", got, ch, err, token, changed, failed)
		}
	}
	want("one", false, false)
	write(t, path, "two\n")
	want("two", true, false)
	want("two", false, false)
	write(t, path, "")
	want("two", true, true)
	want("two", false, true)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want("two", false, true)
	write(t, path, "two")
	want("two", true, false)
	// Replaced by a rename, as deployments do it.
	for _, token := range []string{"three", "four", "five"} {
		write(t, path+".new", token)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		want(token, true, false)
	}
}
