//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// containerFile is what the container file says of the image.
type containerFile struct {
	build      []string // command line, after its variables
	env        []string
	user       string
	entry, cmd []string
	health     []string
}

func parseContainerFile(t *testing.T) (c containerFile) {
	t.Helper()
	text := read(t, filepath.Join(deploy, "container", "Containerfile"))
	find := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^` + pattern + `$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the container file has no line like %q", pattern)
		}
		return m[1]
	}
	words := func(pattern string) (out []string) {
		t.Helper()
		if err := json.Unmarshal([]byte(find(pattern)), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for word := range strings.FieldsSeq(find(`RUN (CGO_ENABLED.*)`)) {
		if len(c.build) == 0 && strings.Contains(word, "=") {
			c.env = append(c.env, word)
		} else {
			c.build = append(c.build, word)
		}
	}
	c.user = find(`USER (.*)`)
	c.entry, c.cmd, c.health = words(`ENTRYPOINT (.*)`), words(`CMD (.*)`), words(`HEALTHCHECK .* CMD (.*)`)
	return c
}

// TestImage builds the binary as the container file does and runs it as the image would: alone in a directory that is its
// root, as the image's user, with the image's command and health check, until SIGTERM.
func TestImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("another root directory needs root")
	}
	c := parseContainerFile(t)
	root := t.TempDir()
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), c.build[0], c.build[1:]...)
	for i, arg := range build.Args {
		if arg == "-o" {
			build.Args[i+1] = filepath.Join(root, build.Args[i+1])
		}
	}
	build.Dir, build.Env = "../..", append(os.Environ(), c.env...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	file := filepath.Join(root, c.cmd[len(c.cmd)-1])
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "drain_timeout = \"1s\"\n[listen]\nbind = \"127.0.0.1:0\"\ntls.generate = \"localhost\"\n[internal]\nlisten = \"127.0.0.1:4444\"\n[auth]\npublic = \"**\"\n[cache]\ncapacity = \"64MiB\" # there is no /proc to tell how much memory there is\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	inside := func(name string, command ...string) *drive.Process {
		t.Helper()
		return drive.Start(t, name, "chroot", append([]string{"--userspec=" + c.user, root}, command...)...)
	}
	if code := inside("check", append(c.entry, "check", c.cmd[len(c.cmd)-1])...).Wait(t, 5*time.Second); code != 0 {
		t.Errorf("moqmesh check exits with %d", code)
	}
	if code := inside("health before", c.health...).Wait(t, 10*time.Second); code == 0 {
		t.Error("healthy without a relay")
	}
	relay := inside("relay", append(c.entry, c.cmd...)...)
	drive.Get(t, "http://127.0.0.1:4444/health")
	if code := inside("health", c.health...).Wait(t, 10*time.Second); code != 0 {
		t.Errorf("the health check exits with %d", code)
	}
	relay.Signal(t, syscall.SIGTERM)
	if code := relay.Wait(t, 5*time.Second); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
