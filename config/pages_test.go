package config_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/config"
)

var update = flag.Bool("update", false, "write the example file and the reference page anew")

// TestPages holds the example file and the reference page to the table of keys.
func TestPages(t *testing.T) {
	for path, want := range map[string]string{"../config.example.toml": config.Example(), "../docs/config.md": config.Reference()} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not up to date, run go test ./config -run TestPages -update: %s", path, diff)
		}
	}
}

// TestExampleIsTheDefault: the example file starts a relay, and but for what it must set, as the defaults do.
func TestExampleIsTheDefault(t *testing.T) {
	want := mustLoad(t, "[auth]\npublic = \"anon/**\"\n[listen]\ntls.generate = \"localhost\"\n", nil)
	if diff := cmp.Diff(want, mustLoad(t, config.Example(), nil), plain); diff != "" {
		t.Error(diff)
	}
}

// TestExampleShowsWorkingValues: what is commented out works too, except that the files do not exist.
func TestExampleShowsWorkingValues(t *testing.T) {
	doc := regexp.MustCompile(`(?m)^#(\w)`).ReplaceAllString(config.Example(), "$1")
	doc = strings.ReplaceAll(doc, "/etc/moqmesh/cluster.jwt", withTokenFile(t, "TOKENFILE"))
	doc = strings.ReplaceAll(doc, "/etc/moqmesh/lan.key", strings.Repeat("ab", 32))
	doc = strings.Replace(doc, "\nlan.enabled = false\n", "\nlan.enabled = true\n", 1)
	// Only one decider at a time.
	for name, leave := range map[string][]string{
		"public": {"auth.url", "auth.stale_window", "auth.local.", "listen.tls.root", "web.https.root"},
		"url":    {"auth.public", "auth.local."},
		"local":  {"auth.public", "auth.url", "auth.local.key_dir", "auth.local.jwks"},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustLoad(t, without(doc, leave...), nil)
			if len(c.Warnings) != 0 {
				t.Errorf("warnings: %v", c.Warnings)
			}
			if len(c.Cluster.Peers) != 2 || c.Web.HTTPSListen == "" || c.Cache.MaxAge == 0 {
				t.Errorf("commented settings are not there: %+v", c)
			}
		})
	}
	for _, k := range config.Keys() {
		short := k.Name[strings.IndexByte(k.Name, '.')+1:]
		if !strings.Contains(doc, "\n"+short+" = ") {
			t.Errorf("%s is missing in the example", k.Name)
		}
	}
}

// without drops the settings whose names have one of the prefixes.
func without(doc string, prefixes ...string) string {
	var b strings.Builder
	section := ""
	for line := range strings.Lines(doc) {
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimRight(name, "]\n") + "."
		}
		name, _, set := strings.Cut(line, " = ")
		if !set || !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(section+name, p) }) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestReferenceNamesEverything: every key with its flag, variable and default, and everything that is refused.
func TestReferenceNamesEverything(t *testing.T) {
	page := config.Reference()
	for _, k := range config.Keys() {
		short := k.Name[strings.IndexByte(k.Name, '.')+1:]
		line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(fmt.Sprintf("`%s`<br>`--%s`<br>`%s` |", short, k.Flag, k.Env)) + `.*$`).FindString(page)
		if !strings.Contains(line, k.Default) || !strings.Contains(line, k.Doc) {
			t.Errorf("%s: %q", k.Name, line)
		}
		if !strings.HasSuffix(k.Doc, ".") || k.Doc[0] < 'A' || k.Doc[0] > 'Z' {
			t.Errorf("%s: the text %q is not a sentence", k.Name, k.Doc)
		}
		if (k.Default == "") == (k.Example == "") {
			t.Errorf("%s needs either a default or an example", k.Name)
		}
	}
	inert, unsupported := config.OutsideNames()
	for _, o := range append(inert, unsupported...) {
		if !strings.Contains(page, "| `"+o.Name) {
			t.Errorf("%s is missing", o.Name)
		}
	}
}

func TestUsage(t *testing.T) {
	var b strings.Builder
	if err := config.Usage(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, k := range config.Keys() {
		if !regexp.MustCompile(`(?m)^  --` + k.Flag + `( \S+)?  \[` + k.Env + `\]$`).MatchString(text) {
			t.Errorf("--%s is missing", k.Flag)
		}
	}
	for i, line := range strings.Split(text, "\n") {
		if len(line) > 100 {
			t.Errorf("line %d has %d characters: %s", i+1, len(line), line)
		}
	}
	for _, want := range []string{" Default: [::]:443.\n", " moq-lite-06,moq-lite-05,moq-lite-04,moq-lite-03,moq-lite-02,moq-lite-01.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	// By section, in the order of the page.
	last := -1
	for _, title := range []string{"LISTEN:", "CONNECT:", "QUIC:", "CLUSTER:", "AUTH:", "WEB:", "LIMITS:", "INTERNAL:", "CACHE:", "LOG:", "GENERAL:"} {
		at := strings.Index(text, "\n"+title)
		if at <= last {
			t.Errorf("%s is not where it belongs", title)
		}
		last = at
	}
}
