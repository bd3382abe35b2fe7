package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/bench"
)

// measured is a run of fanout-100.
func measured(relay string, cpu, others float64) line {
	return line{Relay: relay, Case: "fanout-100", Result: &bench.Result{
		Mode: "fanout", Good: true, Load: bench.Load{Own: 12, Others: others, Relays: []bench.RelayLoad{{Peak: 50}}},
		Media: &bench.MediaFigures{PerGbit: cpu, PerViewer: 200, Mbit: 98},
	}}
}

// TestTable: minimum and median of the calm runs, beside each other; runs without a result are told of.
func TestTable(t *testing.T) {
	lines := []line{
		measured(ours, 1.5, 5), measured(ours, 1, 0), measured(ours, 1.1, 20), measured(ours, 0.1, 150),
		measured(rust, 2, 90), measured(rust, 3, 0),
		{Relay: rust, Case: "fanout-100", Error: "no result"},
	}
	got := string(makeTable(lines))
	for _, want := range []string{
		"| Case | Figure | moqmesh | Rust relay | ours / theirs |\n",
		"| 100 viewers of 1 Mbit/s | CPU s per Gbit | 1 / 1.1 | 2 / 2.5 | 0.54 |\n",
		"|  | KiB per viewer | 200 | 200 | 1.00 |\n",
		"|  | runs used; generator, others, % of a core | 3 of 4; 12, 5 | 2 of 3; 12, 45; 1 failed |  |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	alone := string(makeTable(lines[:2]))
	if strings.Contains(alone, "Rust") || !strings.Contains(alone, "| 100 viewers of 1 Mbit/s | CPU s per Gbit | 1 / 1.25 |\n") {
		t.Errorf("without another relay:\n%s", alone)
	}
}

// TestRatio: of each turn, in which both were measured; a machine that has become twice as fast is no difference.
func TestRatio(t *testing.T) {
	of := func(relay string, runs ...line) runs { return choose(runs, relay, "fanout-100") }
	us := of(ours, measured(ours, 1, 0), measured(ours, 2, 0), measured(ours, 9, 90), measured(ours, 3, 0))
	for name, tt := range map[string]struct {
		them runs
		want string
	}{
		"each":    {of(rust, measured(rust, 2, 0), measured(rust, 4, 0), measured(rust, 1, 0), measured(rust, 6, 0)), "0.50"},
		"one":     {of(rust, line{Relay: rust, Case: "fanout-100", Error: "none"}, measured(rust, 3, 0)), "0.67"},
		"nothing": {of(rust, measured(rust, 0, 0)), ""},
		"nobody":  {of(rust), ""},
	} {
		if got := ratio(us, tt.them, perGbit.of); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Where more is better the best run is the largest.
func TestLarger(t *testing.T) {
	runs := []*bench.Result{measured(ours, 1, 0).Result, measured(ours, 1, 0).Result}
	runs[1].Media.Mbit = 200
	got := cells("", mbit, choose([]line{{Relay: ours, Case: "x", Result: runs[0]}, {Relay: ours, Case: "x", Result: runs[1]}}, ours, "x"), choose(nil, rust, "x"), true)
	if diff := cmp.Diff([]string{"", "Mbit/s", "200 / 149", "–", ""}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1234.5: "1234", 99.95: "100", 12.34: "12.3", 1.2345: "1.23", 0.012345: "0.0123", 1.5: "1.5", 2: "2"} {
		if got := number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestInsert(t *testing.T) {
	page := "before\n" + beginMark + "\nold\n" + endMark + "\nafter\n"
	once, err := insert([]byte(page), []byte("| new |\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + beginMark + "\n\n| new |\n\n" + endMark + "\nafter\n"
	if diff := cmp.Diff(want, string(once)); diff != "" {
		t.Error(diff)
	}
	if again, err := insert(once, []byte("| new |\n")); err != nil || string(again) != want {
		t.Errorf("a second time: %v, %q", err, again)
	}
	for _, bad := range []string{"", beginMark, endMark + beginMark} {
		if _, err := insert([]byte(bad), nil); err == nil {
			t.Errorf("%q has a place", bad)
		}
	}
}

// TestReport writes the table of a record into a page, without a run.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	record, page := filepath.Join(dir, "runs.jsonl"), filepath.Join(dir, "page.md")
	b := &bed{settings: &settings{record: record}}
	for _, l := range []line{measured(ours, 1, 0), measured(rust, 2, 0)} {
		if err := b.keep(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(page, []byte(beginMark+endMark), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &settings{record: record, write: page}
	if err := s.report(nil); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(page); err != nil || !strings.Contains(string(got), "| 1 | 2 | 0.50 |") {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := readLines(bufio.NewReader(strings.NewReader("{}{"))); err == nil {
		t.Error("half a line is taken")
	}
}

// TestBounds: the search ends near the edge, wherever it is.
func TestBounds(t *testing.T) {
	for _, edge := range []int{4, 40, 290, 300, 512, 1480, 5000} {
		var b bounds
		for range 40 {
			n := b.next()
			if n == 0 {
				break
			}
			b.tried(n, n <= edge)
		}
		if b.next() != 0 || b.good > edge || b.bad <= edge || b.bad-b.good > max(10, edge/20) {
			t.Errorf("edge %d: %+v", edge, b)
		}
	}
}

func TestPassed(t *testing.T) {
	good := func(f func(*bench.Result)) *bench.Result {
		r := measured(ours, 1, 0).Result
		f(r)
		return r
	}
	for name, tt := range map[string]struct {
		r    *bench.Result
		want bool
	}{
		"good":      {good(func(*bench.Result) {}), true},
		"no result": {nil, false},
		"lost":      {good(func(r *bench.Result) { r.Good = false }), false},
		"late":      {good(func(r *bench.Result) { r.Media.Delay.P99 = 101 }), false},
		"saturated": {good(func(r *bench.Result) { r.Saturated = true }), false},
	} {
		if got := passed(tt.r); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSettings: what cannot be compared is said before anything starts.
func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct{ args, want string }{
		"unknown case": {"-cases nonsense", "none of fanout-100"},
		"no record":    {"-write x.md", "-record"},
		"repeats":      {"-repeats -1", "-repeats"},
		"profiles":     {"-profiles x -rust moq-relay", "-profiles"},
		"share":        {"-relay-cgroup x -realtime", "-relay-cgroup"},
		"no relay":     {"-moqmesh /nowhere/moqmesh", "/nowhere/moqmesh"},
		"no Rust":      {"-moqmesh " + os.Args[0] + " -rust /nowhere/moq-relay", "/nowhere/moq-relay"},
	} {
		if name == "no Rust" {
			_, err := (&settings{moqmesh: "true", rust: "/nowhere/moq-relay"}).kinds(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err := run(context.Background(), strings.Fields(tt.args)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	chosen, err := chooseCases("bulk,idle-500")
	if err != nil || len(chosen) != 2 || chosen[1].name != "idle-500" {
		t.Errorf("%v", err)
	}
}

// TestCommand: each process is on its core, before others if that is wanted.
func TestCommand(t *testing.T) {
	for realtime, want := range map[bool]string{false: "taskset --cpu-list 3 relay x", true: "chrt --rr 1 taskset --cpu-list 3 relay x"} {
		b := &bed{settings: &settings{realtime: realtime}}
		if got := strings.Join(b.command("3", []string{"relay", "x"}).Args, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMedia: the length of the window is passed to those modes that take it.
func TestMedia(t *testing.T) {
	for _, c := range cases {
		mode, _, _ := strings.Cut(c.name, "-")
		if want := strings.Contains("fanout audio bulk chain", mode); c.media() != want {
			t.Errorf("%s: %v", c.name, c.media())
		}
	}
	if !saturation(10).media() {
		t.Error("the search is of media")
	}
}

func TestUDPBound(t *testing.T) {
	const table = "  sl  local_address rem_address   st\n  70: 0100007F:1F90 00000000:0000 07 00000000:00000000\n"
	for port, want := range map[int]bool{0x1f90: true, 0x1f91: false, 0: false} {
		if got := udpBound([]byte(table), port); got != want {
			t.Errorf("port %d: %v", port, got)
		}
	}
}

// TestStart: a relay that ends at once is tried again, then the run is given up with what it said.
func TestStart(t *testing.T) {
	b := &bed{settings: &settings{relayCPU: "0"}, cert: certificate{}}
	_, err := b.startAnew(t.Context(), kind{name: ours, binary: "sh", lead: []string{"-c", "echo no luck; exit 1"}}, alone)
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("%v", err)
	}
}

// TestConfine: a relay goes into its control group, and one that cannot does not run beside it.
func TestConfine(t *testing.T) {
	group := t.TempDir()
	b := &bed{settings: &settings{cgroup: group}}
	if err := b.confine(4711); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(group, "cgroup.procs")); err != nil || string(got) != "4711" {
		t.Errorf("%q, %v", got, err)
	}
	b.cgroup = filepath.Join(group, "none")
	if err := b.confine(4711); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestProfile: what the relay answers is kept under the name of the case; an error is not.
func TestProfile(t *testing.T) {
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/debug/pprof/profile?seconds=3" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("samples"))
	}))
	defer relay.Close()
	b := &bed{settings: &settings{profiles: t.TempDir(), window: 3 * time.Second}}
	n := &node{internal: relay.Listener.Addr().String()}
	if err := b.profile(t.Context(), n, "audio-1"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(b.profiles, "audio-1.pprof")); err != nil || string(got) != "samples" {
		t.Errorf("%q, %v", got, err)
	}
	b.window = time.Minute
	if err := b.profile(t.Context(), n, "bulk"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(b.profiles, "bulk.pprof")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
