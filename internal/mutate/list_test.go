package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the module, seen from here.
const root = "../.."

func mutations(t *testing.T) []mutation {
	t.Helper()
	all, err := parse(kept)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestListApplies keeps the list from rotting: every text is where it says, and what it becomes is Go.
func TestListApplies(t *testing.T) {
	for _, m := range mutations(t) {
		source, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Fatal(err)
		}
		text, err := m.apply(string(source))
		if err != nil {
			t.Errorf("%d %s, %s: %v", m.number, m.label(), m.what, err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, 0); err != nil {
			t.Errorf("%d %s, %s: %v", m.number, m.label(), m.what, err)
		}
		for _, at := range m.places {
			if !hasTest(t, at) {
				t.Errorf("%d %s: no test %v", m.number, m.label(), at)
			}
		}
	}
}

// hasTest says whether there are tests at a place.
func hasTest(t *testing.T, at place) bool {
	t.Helper()
	name := "Test"
	if at.tests != "" {
		name = at.tests + "("
	}
	files, err := filepath.Glob(filepath.Join(root, at.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "\nfunc "+name)
	})
}

// TestEveryRule demands a mutation of every rule of routing from R18 to R47, and of failover from F18 to F36.
func TestEveryRule(t *testing.T) {
	have := map[string]bool{}
	for _, m := range mutations(t) {
		for _, r := range m.rules {
			have[r] = true
		}
	}
	want := []string{"3.1", "4.1", "R33a", "R33b", "F27a"}
	for n := 18; n <= 47; n++ {
		want = append(want, fmt.Sprint("R", n))
	}
	for n := 18; n <= 36; n++ {
		want = append(want, fmt.Sprint("F", n))
	}
	for n := 1; n <= 12; n++ {
		want = append(want, fmt.Sprint("H", n))
	}
	for _, r := range want {
		if !have[r] {
			t.Errorf("no mutation of %s", r)
		}
		delete(have, r)
	}
	for r := range have {
		t.Errorf("%s is no rule of the ranges that are kept", r)
	}
}

// TestDistinct: no mutation is kept twice.
func TestDistinct(t *testing.T) {
	seen := map[string]int{}
	for _, m := range mutations(t) {
		key := fmt.Sprint(m.file, m.places, m.old, "\x00", m.new)
		if n, twice := seen[key]; twice {
			t.Errorf("%d is %d again", m.number, n)
		}
		seen[key] = m.number
	}
}

func TestParse(t *testing.T) {
	got, err := parse("# head\n\nR1: broken\nroute/a.go in route origin:TestX\n-\told\n-last\n+\tnew\n\n\nF2 R3a: gone\nmedia/b.go\n-text\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []mutation{
		{1, []string{"R1"}, "broken", "route/a.go", []place{{"route", ""}, {"origin", "TestX"}}, "\told\nlast", "\tnew"},
		{2, []string{"F2", "R3a"}, "gone", "media/b.go", []place{{"media", ""}}, "text", ""},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mutation{}, place{})); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{
		"R1 broken\na.go\n-x", "Q1: broken\na.go\n-x", "R1: broken\na.go", "R1: broken\na.txt\n-x", "R1: broken\na.go in \n-x",
		"R1: broken\na.go\n+x", "R1: broken\na.go\n-x\n+x", "R1: broken\na.go\n-x\n+y\n-z", "R1: broken\na.go\n-x\nz", "R1: broken\n",
	} {
		if m, err := parse(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, m)
		}
	}
}

func TestApply(t *testing.T) {
	m := mutation{file: "a.go", old: "a < b", new: "a <= b"}
	for text, want := range map[string]string{"if a < b {": "if a <= b {", "": "", "a < b, a < b": ""} {
		got, err := m.apply(text)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []mutation{{number: 1, rules: []string{"R1"}}, {number: 2, rules: []string{"R1", "R2"}}, {number: 3, rules: []string{"F1"}}}
	for only, want := range map[string][]int{"": {1, 2, 3}, "2": {2}, "R1": {1, 2}, "R2": {2}, "F1": {3}, "R9": nil} {
		var got []int
		for _, m := range choose(all, only) {
			got = append(got, m.number)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q chooses %v, want %v", only, got, want)
		}
	}
}
