//go:build interop

package interop

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestMedia sends an H.264 fMP4 through a chain of three and compares every byte; the far end must still decode.
func TestMedia(t *testing.T) {
	dir := t.TempDir()
	original, received := filepath.Join(dir, "in.mp4"), filepath.Join(dir, "out.mp4")
	ffmpeg(t, "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=6", "-c:v", "libx264", "-preset", "veryfast",
		"-g", "25", "-pix_fmt", "yuv420p", "-movflags", "empty_moov+frag_keyframe+default_base_moof", "-f", "mp4", original)
	relays := drive.Chain(t, 3)
	pub := script(t, relays[0], "media.py", "pub", relays[0].MOQT(), "movie", original)
	pub.Expect(t, "published", 15*time.Second)
	sub := script(t, relays[2], "media.py", "sub", relays[2].HTTPS(), "movie", received)
	summary := sub.Expect(t, "summary", 40*time.Second)
	want, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(received)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("received %d bytes, want the %d of the original: %v", len(got), len(want), summary)
	}
	if frames := decoded(t, received); frames != 150 {
		t.Errorf("%d frames decode at the far end, want 150", frames)
	}
	tracks, _ := summary["tracks"].(map[string]any)
	if len(tracks) < 2 {
		t.Errorf("the imported track of the catalog is missing: %v", summary)
	}
	for name, v := range tracks {
		if m, _ := v.(map[string]any); m["frames"] == 0.0 {
			t.Errorf("track %s: no frames", name)
		}
	}
}

func ffmpeg(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffmpeg", append([]string{"-v", "error", "-y"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ffmpeg: %v\n%s", err, out)
	}
}

// decoded counts the video frames that decode without an error.
func decoded(t *testing.T, file string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-i", file, "-f", "framemd5", "-").Output()
	if err != nil {
		t.Fatalf("decoding: %v", err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}
