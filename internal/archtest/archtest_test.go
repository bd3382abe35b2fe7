package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/moqmesh/moqmesh"

// allowed lists, for each package of the product, the packages of ours that its non-test code may import. A package
// that is missing here fails the test: the map of ARCHITECTURE.md has to name it first.
var allowed = map[string][]string{
	"wire":                       {},
	"paths":                      {},
	"transport":                  {},
	"transport/internal/qstream": {"transport"},
	"transport/quic":             {"transport", "transport/internal/qstream"},
	"transport/webtransport":     {"transport", "transport/internal/qstream"},
	"transport/tlsconf":          {},
	"transport/qmux":             {"transport", "wire"},
	"transport/endpoint":         {"transport", "transport/qmux", "transport/quic", "transport/tlsconf", "transport/webtransport"},
	"route":                      {"paths"},
	"media":                      {"wire"},
	"session":                    {"media", "route"},
	"lite/message":               {"paths", "wire"},
	"lite":                       {"lite/message", "media", "paths", "route", "session", "transport", "wire"},
	"origin":                     {"media", "paths", "route", "session"},
	"auth":                       {"internal/strictjson", "paths"},
	"auth/lease":                 {"auth"},
	"auth/remote":                {"auth"},
	"auth/serve":                 {"auth", "auth/token", "paths"},
	"auth/token":                 {"internal/httpcache", "internal/strictjson", "paths"},
	"cluster":                    {"internal/backoff", "paths", "route"},
	"cluster/peerlist":           {"cluster", "internal/filewatch", "internal/httpcache", "internal/strictjson"},
	"lan":                        {},
	"stats":                      {"media", "session"},
	"admin":                      {},
	"relay":                      {"admin", "auth", "auth/lease", "cluster", "cluster/peerlist", "internal/memory", "internal/overload", "lan", "lite", "lite/message", "media", "origin", "paths", "route", "session", "stats", "transport", "transport/endpoint", "transport/tlsconf"},
	"config":                     {"auth", "auth/remote", "auth/serve", "auth/token", "cluster", "cluster/peerlist", "internal/backoff", "internal/memory", "lan", "lite", "lite/message", "media", "paths", "relay", "route", "transport/endpoint", "transport/tlsconf"},
	"client":                     {"lite", "lite/message", "media", "paths", "route", "session", "transport", "transport/endpoint", "transport/tlsconf"},
	"cmd/moqmesh":                {"auth/serve", "auth/token", "bench/command", "config", "internal/collector", "internal/look", "internal/tool", "paths", "relay"},
	"bench":                      {"client", "internal/cputime", "internal/latency", "internal/testmedia", "lite/message", "media", "route", "transport", "transport/endpoint", "transport/tlsconf", "wire"},
	"bench/command":              {"bench", "client", "internal/tool"},
	"bench/compare":              {"bench"},
	"internal/archtest":          {},
	"internal/backoff":           {},
	"internal/collector":         {"internal/cputime"},
	"internal/cputime":           {},
	"internal/drive":             {},
	"internal/filewatch":         {},
	"internal/httpcache":         {},
	"internal/latency":           {},
	"internal/look":              {"admin", "internal/tool"},
	"internal/linklab":           {},
	"internal/memory":            {},
	"internal/mutate":            {},
	"internal/netsim":            {},
	"internal/overload":          {},
	"internal/peertest":          {"lite/message", "transport", "wire"},
	"internal/sim":               {"auth", "client", "cluster", "internal/backoff", "internal/netsim", "lite", "lite/message", "media", "origin", "paths", "relay", "route", "transport", "transport/endpoint", "transport/tlsconf"},
	"internal/strictjson":        {},
	"internal/testmedia":         {},
	"internal/tool":              {"client", "internal/latency", "internal/testmedia", "media", "route"},
	"test/drill":                 {},
	"test/e2e":                   {},
	"test/interop":               {},
	"test/longlink":              {},
}

type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-pgo=off", "-json=ImportPath,Doc,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// TestArrows fails on an import that the table above does not allow.
func TestArrows(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s is not in the table of allowed imports", name)
			continue
		}
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok && !slices.Contains(may, ours) {
				t.Errorf("%s must not import %s", name, ours)
			}
		}
	}
}

// TestNoCycleInTable checks the table itself: arrows go down only.
func TestNoCycleInTable(t *testing.T) {
	state := map[string]int{}
	var visit func(string)
	visit = func(n string) {
		switch state[n] {
		case 1:
			t.Fatalf("the table has a cycle through %s", n)
		case 2:
			return
		}
		state[n] = 1
		for _, next := range allowed[n] {
			if _, ok := allowed[next]; !ok {
				t.Errorf("%s may import %s, which the table does not have", n, next)
			}
			visit(next)
		}
		state[n] = 2
	}
	for _, n := range slices.Sorted(maps.Keys(allowed)) {
		visit(n)
	}
}

// TestPurePackages keeps clocks, randomness, logs and I/O out of the packages whose whole point is to have none.
func TestPurePackages(t *testing.T) {
	banned := map[string][]string{
		"route":        {"context", "log", "log/slog", "math/rand", "math/rand/v2", "net", "os", "sync", "crypto/rand"},
		"paths":        {"context", "log", "log/slog", "net", "os", "time"},
		"wire":         {"context", "log", "log/slog", "net", "os", "sync"},
		"lite/message": {"context", "log", "log/slog", "net", "os", "sync"},
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imp := range p.Imports {
			if slices.Contains(banned[name], imp) {
				t.Errorf("%s is pure and must not import %s", name, imp)
			}
		}
	}
}

// TestPackageDocs demands a package comment everywhere.
func TestPackageDocs(t *testing.T) {
	for _, p := range list(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
