//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

const deploy = "../../deploy"

// prometheus returns the path of a program of the Prometheus package.
func prometheus(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(drive.Env(t, "PROMETHEUS_DIR"), name)
}

// run runs a command in a directory and demands that it succeeds.
func run(t *testing.T, dir, command string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", command, args, err, out)
	}
	return string(out)
}

// TestAlerts: promtool accepts the rules, and their tests, of which there is one for every alert, pass.
func TestAlerts(t *testing.T) {
	dir := filepath.Join(deploy, "prometheus")
	promtool, err := filepath.Abs(prometheus(t, "promtool"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, promtool, "check", "config", "prometheus.yml")
	run(t, dir, promtool, "test", "rules", "alerts_test.yml")
	tests := read(t, filepath.Join(dir, "alerts_test.yml"))
	alerts := regexp.MustCompile(`(?m)- alert: (\w+)`).FindAllStringSubmatch(read(t, filepath.Join(dir, "alerts.yml")), -1)
	if len(alerts) < 10 {
		t.Errorf("%d alerts", len(alerts))
	}
	for _, a := range alerts {
		if !strings.Contains(tests, "alertname: "+a[1]+"\n") {
			t.Errorf("%s has no test", a[1])
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// dashboard is what is needed of one.
type dashboard struct {
	Panels []struct {
		Title, Type string
		Targets     []struct{ Expr string }
	}
}

// TestThreeRelaysFromDeploy runs the relays of the compose file as processes, from the same files, with a Prometheus that
// watches them: content crosses, every query of the dashboard gives something, and every alert can be evaluated.
func TestThreeRelaysFromDeploy(t *testing.T) {
	compose := read(t, filepath.Join(deploy, "compose", "compose.yaml"))
	ports := map[string][2]int{"a": {4451, 9451}, "b": {4452, 9452}, "c": {4453, 9453}}
	for _, name := range []string{"a", "b", "c"} {
		file := filepath.Join(deploy, "compose", "relay-"+name+".toml")
		text := read(t, file)
		for _, port := range ports[name] {
			if n := strings.Count(compose, fmt.Sprintf("127.0.0.1:%d:%d/", port, port)); n == 0 || !strings.Contains(text, fmt.Sprintf("[::]:%d", port)) {
				t.Errorf("port %d of relay %s is not in both files", port, name)
			}
		}
		if !strings.Contains(compose, "./relay-"+name+".toml:") {
			t.Errorf("the compose file does not use %s", file)
		}
		// Only the names of the others differ outside of the compose network.
		peers := regexp.MustCompile(`http://relay-\w:\d+/`).FindAllString(text, -1)
		for i, p := range peers {
			peers[i] = regexp.MustCompile(`relay-\w`).ReplaceAllString(p, "127.0.0.1")
		}
		t.Setenv("MOQ_CLUSTER_CONNECT", strings.Join(peers, ","))
		drive.Start(t, "relay-"+name, binary(t), "relay", file)
	}
	page := func(name, path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", ports[name][1], path) }
	for name, want := range map[string]int{"a": 2, "b": 1} {
		drive.WaitFor(t, 15*time.Second, "relay "+name+" linked", func() bool {
			return strings.Count(drive.Get(t, page(name, "/nodes")), `"id"`) == want
		})
	}
	prom := startPrometheus(t, ports)
	drive.Start(t, "pub", binary(t), "pub", "http://127.0.0.1:4451/", "demo")
	sub := drive.Start(t, "sub", binary(t), "sub", "http://127.0.0.1:4453/", "demo", "--seconds", "30")
	sub.Expect(t, "second", 15*time.Second)
	queries(t, prom)
	alerts(t, prom)
	summary := sub.Expect(t, "summary", 30*time.Second)
	if summary["ok"] != true {
		t.Errorf("summary %v", summary)
	}
}

// startPrometheus scrapes the relays every second and loads the alerts. It returns the base URL.
func startPrometheus(t *testing.T, ports map[string][2]int) string {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(deploy, "prometheus", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, p := range ports {
		targets = append(targets, fmt.Sprintf("'127.0.0.1:%d'", p[1]))
	}
	slices.Sort(targets)
	conf := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n- job_name: moqmesh\n  static_configs: [{targets: [%s]}]\n",
		rules, strings.Join(targets, ","))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	base := fmt.Sprintf("127.0.0.1:%d", drive.FreePort(t))
	drive.Start(t, "prometheus", prometheus(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+base)
	drive.Get(t, "http://"+base+"/-/ready")
	return "http://" + base
}

// query runs an instant query and returns how many series it gives.
func query(t *testing.T, base, expr string) int {
	t.Helper()
	res, err := http.Get(base + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.Status != "success" {
		t.Errorf("%s: %s", expr, answer.Error)
	}
	return len(answer.Data.Result)
}

// queries runs what the dashboard asks.
func queries(t *testing.T, base string) {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, filepath.Join(deploy, "grafana", "moqmesh.json"))), &d); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			n++
			expr := strings.NewReplacer("$instance", ".*", "$__rate_interval", "15s").Replace(target.Expr)
			// The first ones wait for a few scrapes.
			drive.WaitFor(t, 20*time.Second, p.Title+": an answer to "+expr, func() bool { return query(t, base, expr) > 0 })
		}
	}
	if n < 30 {
		t.Errorf("%d queries", n)
	}
	if query(t, base, "no_such_metric") != 0 {
		t.Error("queries give something whatever they ask")
	}
}

// alerts demands that each alert has been evaluated without an error and that none fires on relays that do well.
func alerts(t *testing.T, base string) {
	t.Helper()
	type rule struct{ Name, Health, State, LastError string }
	bad := func() (out []rule) {
		var answer struct {
			Data struct{ Groups []struct{ Rules []rule } }
		}
		if err := json.Unmarshal([]byte(drive.Get(t, base+"/api/v1/rules")), &answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.Data.Groups) != 1 {
			t.Fatalf("%d groups of rules", len(answer.Data.Groups))
		}
		for _, r := range answer.Data.Groups[0].Rules {
			if r.Health != "ok" || r.State != "inactive" {
				out = append(out, r)
			}
		}
		return out
	}
	for end := time.Now().Add(20 * time.Second); len(bad()) > 0; time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("alerts on relays that do well: %+v", bad())
		}
	}
	// Every metric that the alerts name is there. Those with rows only after trouble are exempt.
	rules := read(t, filepath.Join(deploy, "prometheus", "alerts.yml"))
	for _, name := range regexp.MustCompile(`\b(moq_relay|moqmesh|process)_\w+`).FindAllString(rules, -1) {
		if query(t, base, name) == 0 {
			t.Errorf("no relay has %s", name)
		}
	}
}

// TestUnit: systemd takes the unit, and the commands in it are ours.
func TestUnit(t *testing.T) {
	unit := read(t, filepath.Join(deploy, "systemd", "moqmesh.service"))
	for _, part := range []string{"Type=notify", "ExecStart=/usr/local/bin/moqmesh relay ", "ExecStartPre=/usr/local/bin/moqmesh check "} {
		if !strings.Contains(unit, part) {
			t.Errorf("the unit lacks %q", part)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd here to judge the unit")
	}
	file := filepath.Join(t.TempDir(), "moqmesh.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(unit, "/usr/local/bin/moqmesh", binary(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(t, ".", analyze, "verify", "--man=no", file); strings.Contains(out, "moqmesh.service:") {
		t.Errorf("systemd complains: %s", out)
	}
}
