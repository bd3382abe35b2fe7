package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moqmesh/moqmesh/bench"
)

// testCase is one load on one arrangement of relays.
type testCase struct {
	name    string
	text    string
	links   [][]int // per relay: which ones it dials
	args    func(nodes []*node) []string
	figures []figure
}

// figure is one number of a result, for the table. Less is better but for those that say otherwise.
type figure struct {
	name   string
	of     func(r *bench.Result) float64
	larger bool // more is better
}

// Arrangements.
var (
	alone = [][]int{{}}
	chain = [][]int{{}, {0}, {1}}
	star  = [][]int{{}, {}, {0, 1}}
)

func first(mode string, flags ...string) func([]*node) []string {
	return func(n []*node) []string { return append([]string{mode, n[0].url()}, flags...) }
}

func ends(mode string, flags ...string) func([]*node) []string {
	return func(n []*node) []string {
		return append([]string{mode, n[0].url(), n[len(n)-1].url()}, flags...)
	}
}

// failing is a failover that ends the first relay with a signal.
func failing(signal string) func([]*node) []string {
	return func(n []*node) []string {
		return []string{
			"failover", n[0].url(), n[1].url(), n[2].url(),
			"--kill", strconv.Itoa(n[0].pid()), "--signal", signal,
		}
	}
}

// What is shown of each mode.
var (
	perGbit  = figure{"CPU s per Gbit", func(r *bench.Result) float64 { return r.Media.PerGbit }, false}
	perFrame = figure{"CPU µs per frame and viewer", func(r *bench.Result) float64 { return r.Media.PerFrame }, false}
	memory   = figure{"KiB per viewer", func(r *bench.Result) float64 { return r.Media.PerViewer }, false}
	p50      = figure{"latency p50 ms", func(r *bench.Result) float64 { return r.Media.Delay.P50 }, false}
	p99      = figure{"latency p99 ms", func(r *bench.Result) float64 { return r.Media.Delay.P99 }, false}
	lost     = figure{"frames lost", func(r *bench.Result) float64 { return float64(r.Media.Lost) }, false}
	mbit     = figure{"Mbit/s", func(r *bench.Result) float64 { return r.Media.Mbit }, true}
	peak     = figure{"peak RSS MiB", func(r *bench.Result) float64 { return r.Relays[0].Peak }, false}

	joinTotal50 = figure{"connect to first frame p50 ms", func(r *bench.Result) float64 { return r.Join.Total.P50 }, false}
	joinTotal99 = figure{"connect to first frame p99 ms", func(r *bench.Result) float64 { return r.Join.Total.P99 }, false}
	joinCPU     = figure{"CPU ms per join", func(r *bench.Result) float64 { return r.Join.CPU }, false}
	joinFailed  = figure{"joins failed", func(r *bench.Result) float64 { return float64(r.Join.Failed) }, false}
	joinFelt    = figure{"p99 ms of those who watch", func(r *bench.Result) float64 { return r.Join.Delay.P99 }, false}
	joinLost    = figure{"frames lost by those who watch", func(r *bench.Result) float64 { return float64(r.Join.Lost) }, false}

	idleMemory = figure{"KiB per session", func(r *bench.Result) float64 { return r.Idle.KiB }, false}
	idleCPU    = figure{"CPU µs per session and second", func(r *bench.Result) float64 { return r.Idle.CPU }, false}
	handshake  = figure{"CPU ms per handshake", func(r *bench.Result) float64 { return r.Idle.Handshake }, false}

	announced   = figure{"all announced ms", func(r *bench.Result) float64 { return r.Announce.Announced }, false}
	lateWatcher = figure{"all to a late watcher ms", func(r *bench.Result) float64 { return r.Announce.Late }, false}
	withdrawn   = figure{"all withdrawn ms", func(r *bench.Result) float64 { return r.Announce.Withdrawn }, false}
	announceCPU = figure{"CPU s to announce, all relays", func(r *bench.Result) float64 { return r.Announce.AnnounceCPU }, false}
	broadcastKB = figure{"KiB per broadcast, all relays", func(r *bench.Result) float64 { return r.Announce.KiB }, false}

	gap      = figure{"longest gap ms", func(r *bench.Result) float64 { return r.Failover.Gap }, false}
	missed   = figure{"frames lost", func(r *bench.Result) float64 { return float64(r.Failover.Lost) }, false}
	repeated = figure{"frames twice", func(r *bench.Result) float64 { return float64(r.Failover.Twice) }, false}
)

var video = []figure{perGbit, memory, p50, p99, lost}

// cases are all there are, in the order of the table.
var cases = []testCase{
	{"fanout-100", "100 viewers of 1 Mbit/s", alone, first("fanout", "-n", "100"), video},
	{"fanout-300", "300 viewers of 1 Mbit/s", alone, first("fanout", "-n", "300"), video},
	{"fanout-1000", "1,000 viewers of 1 Mbit/s", alone, first("fanout", "-n", "1000", "--connecting", "4", "--warmup", "5s"), video},
	{"audio-100", "100 viewers of audio: 50 frames/s of 200 B, groups of 50", alone, first("audio", "-n", "100"), []figure{perFrame, p99, lost}},
	{"audio-1", "the same in groups of one frame", alone, first("audio", "-n", "100", "--group", "1"), []figure{perFrame, p99, lost}},
	{"bulk", "bulk: one viewer, frames of 256 KiB, 16 under way", alone, first("bulk", "--max-age", "2s"), []figure{mbit, perGbit, p50, lost, peak}},
	{"chain-100", "100 viewers, the publisher two relays away", chain, ends("chain", "-n", "100"), []figure{perGbit, p50, p99, lost}},
	{"idle-500", "500 idle sessions", alone, first("idle", "-n", "500"), []figure{idleMemory, idleCPU, handshake}},
	{"announce-10000", "10,000 announcements through three relays, 4 watchers", chain, ends("announce", "-n", "10000"), []figure{announced, lateWatcher, withdrawn, announceCPU, broadcastKB}},
	{"join-200", "200 joins, 20 a second", alone, first("join", "-n", "200"), []figure{joinTotal50, joinTotal99, joinCPU, joinFailed}},
	{"storm-200", "200 joins, 16 at any time, beside 200 viewers", alone, first("join", "-n", "200", "--at-once", "16", "--stay", "--viewers", "200"), []figure{joinTotal50, joinTotal99, joinFailed, joinFelt, joinLost}},
	{"failover-kill", "a relay on the way is killed", star, failing("KILL"), []figure{gap, missed, repeated}},
	{"failover-term", "a relay on the way is asked to leave", star, failing("TERM"), []figure{gap, missed, repeated}},
}

// media says that a case is a run of media, which has a window.
func (c testCase) media() bool {
	return slices.ContainsFunc(c.figures, func(f figure) bool { return f.name == perGbit.name || f.name == perFrame.name })
}

func caseNames() string {
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// chooseCases finds cases by name; "all" is all of them.
func chooseCases(names string) ([]testCase, error) {
	if names == "all" {
		return cases, nil
	}
	var chosen []testCase
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(cases, func(c testCase) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-cases: %q is none of %s", name, caseNames())
		}
		chosen = append(chosen, cases[i])
	}
	return chosen, nil
}

// saturation is a case of the search: as many viewers at 1 Mbit/s as n says, let in slowly.
func saturation(n int) testCase {
	return testCase{
		name: searchName, text: "viewers of 1 Mbit/s", links: alone, figures: video,
		args: first("fanout", "-n", strconv.Itoa(n), "--size", "4167", "--connecting", "2", "--warmup", "6s"),
	}
}
