package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScan(t *testing.T) {
	for name, c := range map[string]struct{ output, want string }{
		"none":       {"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", ""},
		"plain":      {"=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    b_test.go:1: x\n--- FAIL: TestB (0.01s)\nFAIL\n", "TestB"},
		"innermost":  {"=== RUN   TestA/x/y\n--- FAIL: TestA (0.00s)\n    --- PASS: TestA/w (0.00s)\n    --- FAIL: TestA/x (0.00s)\n        --- FAIL: TestA/x/y (0.00s)\n    --- FAIL: TestA/z (0.00s)\nFAIL\n", "TestA/x/y"},
		"crash":      {"=== RUN   TestA\n=== RUN   TestA/x\npanic: oh\n\ngoroutine 1 [running]:\n", "TestA/x (crash)"},
		"deadlock":   {"=== RUN   TestA\nfatal error: all goroutines are asleep - deadlock!\n", "TestA (crash)"},
		"too long":   {"=== RUN   TestA\npanic: test timed out after 1m0s\n", "TestA (too long)"},
		"not at all": {"panic: oh\n", "before any test (crash)"},
	} {
		if got := scan(strings.NewReader(c.output)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// module writes a module with one rule, which is tested on one side only.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.test\n\ngo 1.26\n",
		"rule/rule.go":    "package rule\n\nfunc Free(age int) bool { return age < 4 }\n",
		"rule/a_test.go":  "package rule\n\nimport \"testing\"\n\nfunc TestChild(t *testing.T) {\n\tt.Run(\"3\", func(t *testing.T) {\n\t\tif !Free(3) {\n\t\t\tt.Error(3)\n\t\t}\n\t})\n}\n",
		"wrong/a_test.go": "package wrong\n\nimport \"testing\"\n\nfunc TestNever(t *testing.T) { t.Error(1) }\n",
		"wrong/a.go":      "package wrong\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestChecker: a mutation is noticed or not, or cannot be tested, and the file stays as it is.
func TestChecker(t *testing.T) {
	c := &checker{root: module(t), dir: t.TempDir(), limit: time.Minute}
	rule := func(old, new string) mutation {
		return mutation{1, []string{"R1"}, "broken", "rule/rule.go", []place{{pkg: "rule"}}, old, new}
	}
	before, err := os.ReadFile(filepath.Join(c.root, "rule/rule.go"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.unchanged(t.Context(), []mutation{rule("<", ">")}); err != nil {
		t.Error(err)
	}
	if err := c.unchanged(t.Context(), []mutation{{places: []place{{pkg: "wrong"}}}}); err == nil || !strings.Contains(err.Error(), "TestNever") {
		t.Errorf("tests that fail anyway: %v", err)
	}
	if v := c.check(t.Context(), rule("<", ">")); v.test != "rule TestChild/3" || v.err != nil {
		t.Errorf("noticed: %+v", v)
	}
	if v := c.check(t.Context(), rule("<", "<=")); !errors.Is(v.err, errUnnoticed) {
		t.Errorf("unnoticed: %+v", v)
	}
	if v := c.check(t.Context(), rule("<", "<<")); !errors.Is(v.err, errCompile) {
		t.Errorf("does not compile: %+v", v)
	}
	if v := c.check(t.Context(), rule("old", "new")); v.err == nil || v.brief() != "not tested" {
		t.Errorf("text that is not there: %+v", v)
	}
	after, err := os.ReadFile(filepath.Join(c.root, "rule/rule.go"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has become %q, %v", after, err)
	}
	var out bytes.Buffer
	if err := c.all(t.Context(), []mutation{rule("<", ">"), rule("<", "<=")}, 2, &out); err == nil || !strings.Contains(out.String(), "2 mutations, 1 noticed") {
		t.Errorf("%v: %s", err, out.String())
	}
}
