package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/moqmesh/moqmesh/bench"
	"github.com/moqmesh/moqmesh/internal/tool"
	"github.com/moqmesh/moqmesh/lite/message"
)

func parse(t *testing.T, args string) (*Command, *kong.Context, error) {
	t.Helper()
	var c Command
	k, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := k.Parse(strings.Fields(args))
	return &c, parsed, err
}

func TestFlags(t *testing.T) {
	c, _, err := parse(t, "fanout https://h/ -n 300 --rate 60 --window 3s --pid 5 --pid 6 --json --insecure")
	if err != nil {
		t.Fatal(err)
	}
	f := c.Fanout
	if f.URL != "https://h/" || f.Viewers != 300 || f.Rate != 60 || f.Window != 3*time.Second || !reflect.DeepEqual(f.PID, []int{5, 6}) ||
		!f.JSON || !f.Insecure || f.Size != 4096 || f.Group != 60 || f.Warmup != 2*time.Second {
		t.Errorf("%+v", f)
	}
	if c, _, err = parse(t, "audio moqt://h"); err != nil || c.Audio.Rate != 50 || c.Audio.Size != 200 || c.Audio.Group != 50 {
		t.Errorf("%+v, %v", c.Audio, err)
	}
	if c, _, err = parse(t, "join moqt://a moqt://b --no-wait --at-once 16"); err != nil || c.Join.Wait || c.Join.Watch != "moqt://b" || c.Join.AtOnce != 16 {
		t.Errorf("%+v, %v", c.Join, err)
	}
	if c, _, err = parse(t, "failover moqt://a moqt://b moqt://c --kill 77 --signal TERM"); err != nil || c.Failover.Kill != 77 || c.Failover.Signal != "TERM" {
		t.Errorf("%+v, %v", c.Failover, err)
	}
	for _, bad := range []string{"", "fanout", "chain moqt://a", "failover a b", "failover a b c --signal HUP", "idle u -n x", "nonsense u"} {
		if _, _, err := parse(t, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestNoRun: modes that cannot run say why, with the exit status of no run.
func TestNoRun(t *testing.T) {
	for _, args := range []string{
		"fanout moqt://127.0.0.1:1/ --version lite-04", "audio nothing", "bulk moqt://127.0.0.1:1/ --hash zz", "chain a b --size 1",
		"join a b --per-second 0", "announce nothing -n 0", "idle nothing -n 0", "failover a b c --kill 1",
		"fanout moqt://127.0.0.1:1/ --profile /nowhere/at/all",
	} {
		_, parsed, err := parse(t, args)
		if err != nil {
			t.Fatal(err)
		}
		parsed.BindTo(context.Background(), (*context.Context)(nil))
		err = parsed.Run(&tool.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
		if err == nil || errors.Is(err, ErrFaults) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// fixed is a run with a known result.
type fixed struct {
	result bench.Result
	err    error
}

func (f fixed) Run(context.Context) (bench.Result, error) { return f.result, f.err }

// TestOutcome: what is printed, and how the command ends.
func TestOutcome(t *testing.T) {
	good := bench.Result{Mode: "fanout", Good: true, Media: &bench.MediaFigures{Lost: 0}, Warnings: []string{"the generator was at its limit"}}
	bad := bench.Result{Mode: "fanout", Faults: []string{"3 frames lost"}, Media: &bench.MediaFigures{Lost: 3}}
	failed := errors.New("no relay")
	for name, tt := range map[string]struct {
		run  fixed
		json bool
		want error
		out  string
		warn string
	}{
		"good":  {fixed{result: good}, false, nil, "good", "moqmesh bench: WARNING: the generator was at its limit\n"},
		"json":  {fixed{result: good}, true, nil, `"good":true`, "moqmesh bench: WARNING: the generator was at its limit\n"},
		"bad":   {fixed{result: bad}, false, ErrFaults, "BAD: 3 frames lost", ""},
		"error": {fixed{err: failed}, false, failed, "", ""},
	} {
		var out, warn bytes.Buffer
		c := Common{JSON: tt.json, Profile: filepath.Join(t.TempDir(), "cpu")}
		err := c.run(t.Context(), &tool.Streams{Out: &out, Err: &warn}, tt.run)
		if !errors.Is(err, tt.want) || !strings.Contains(out.String(), tt.out) || warn.String() != tt.warn {
			t.Errorf("%s: %v, %q, %q", name, err, out.String(), warn.String())
		}
		if info, err := os.Stat(c.Profile); err != nil || info.Size() == 0 {
			t.Errorf("%s: no profile: %v", name, err)
		}
		if tt.json && !json.Valid(out.Bytes()) {
			t.Errorf("%s: no JSON", name)
		}
	}
	if status, ok := ErrFaults.(interface{ ExitStatus() int }); !ok || status.ExitStatus() != 2 {
		t.Error("faults do not end with 2")
	}
}

// TestTarget: versions go on to the viewers.
func TestTarget(t *testing.T) {
	c := Common{Dial: tool.Dial{Version: "lite-05", Insecure: true}, PID: []int{3}}
	got, err := c.target(&tool.Streams{}, "a", "b")
	if err != nil || got.Publish != "a" || got.Watch != "b" || !got.TLS.Insecure || len(got.PIDs) != 1 ||
		!reflect.DeepEqual(got.Versions, []message.Version{message.Lite05}) {
		t.Errorf("%+v, %v", got, err)
	}
}
