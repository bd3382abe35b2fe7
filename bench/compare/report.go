package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/moqmesh/moqmesh/bench"
)

// Markers of the table in a Markdown file.
const (
	beginMark = "<!-- compare: begin -->"
	endMark   = "<!-- compare: end -->"
)

// calm is the most that the rest of the machine may use, in percent of a core, for a run that counts, if at least two are.
const calm = 25

// report prints or writes the table of everything in the record; without one, of these lines.
func (s *settings) report(lines []line) error {
	if s.record != "" {
		f, err := os.Open(s.record)
		if err != nil {
			return err
		}
		defer f.Close()
		if lines, err = readLines(bufio.NewReader(f)); err != nil {
			return fmt.Errorf("%s: %w", s.record, err)
		}
	}
	table := makeTable(lines)
	if s.write == "" {
		_, err := os.Stdout.Write(table)
		return err
	}
	page, err := os.ReadFile(s.write)
	if err != nil {
		return err
	}
	if page, err = insert(page, table); err != nil {
		return fmt.Errorf("%s: %w", s.write, err)
	}
	return os.WriteFile(s.write, page, 0o644)
}

func readLines(r *bufio.Reader) (lines []line, err error) {
	for dec := json.NewDecoder(r); dec.More(); {
		var l line
		if err := dec.Decode(&l); err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// insert puts the table between the markers of a page.
func insert(page, table []byte) ([]byte, error) {
	begin, end := bytes.Index(page, []byte(beginMark)), bytes.Index(page, []byte(endMark))
	if begin < 0 || end < begin {
		return nil, errors.New("no place for the table: " + beginMark + " and " + endMark)
	}
	return slices.Concat(page[:begin+len(beginMark)], []byte("\n\n"), table, []byte("\n"), page[end:]), nil
}

// brief is a run in a few words.
func (l line) brief() string {
	head := l.Relay + " " + l.Case + ": "
	if l.Result == nil {
		return head + "ERROR " + l.Error
	}
	r := l.Result
	for _, c := range cases {
		if c.name != l.Case && (c.name != cases[0].name || !strings.HasPrefix(l.Case, searchName)) {
			continue
		}
		for _, f := range c.figures {
			head += fmt.Sprintf("%s %s, ", f.name, number(f.of(r)))
		}
	}
	head += fmt.Sprintf("generator %.0f %%, others %.0f %%", r.Own, r.Others)
	return strings.Join(append([]string{head}, append(r.Faults, r.Warnings...)...), "; ")
}

// runs are those of one relay in one case.
type runs struct {
	all, failed int
	turns       []*bench.Result // nil = failed or left out
	used        []*bench.Result // the others
}

// spread is that of one figure.
func (r runs) spread(of func(*bench.Result) float64) spread {
	values := make([]float64, len(r.used))
	for i, x := range r.used {
		values[i] = of(x)
	}
	return spreadOf(values)
}

// choose takes the runs of a relay in a case: the calm ones if there are two.
func choose(lines []line, relay, name string) (r runs) {
	quiet := func(x *bench.Result) bool { return x != nil && x.Others <= calm }
	for _, l := range lines {
		if l.Relay != relay || l.Case != name {
			continue
		}
		r.all++
		if l.Result == nil {
			r.failed++
		}
		r.turns = append(r.turns, l.Result)
	}
	if n := len(slices.DeleteFunc(slices.Clone(r.turns), func(x *bench.Result) bool { return !quiet(x) })); n >= 2 {
		for i, x := range r.turns {
			if !quiet(x) {
				r.turns[i] = nil
			}
		}
	}
	r.used = slices.DeleteFunc(slices.Clone(r.turns), func(x *bench.Result) bool { return x == nil })
	return r
}

// ratio is the median of the ratios of the turns in which both relays have a run that counts: a machine that gets faster or
// slower in between does not show in it. It is empty where there are none, or nothing to divide.
func ratio(us, them runs, of func(*bench.Result) float64) string {
	var all []float64
	for i := range min(len(us.turns), len(them.turns)) {
		if a, b := us.turns[i], them.turns[i]; a != nil && b != nil && of(a) > 0 && of(b) > 0 {
			all = append(all, of(a)/of(b))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", spreadOf(all).median)
}

// spread is the smallest and the middle of some values.
type spread struct{ least, median float64 }

func spreadOf(values []float64) spread {
	slices.Sort(values)
	n := len(values)
	return spread{values[0], (values[(n-1)/2] + values[n/2]) / 2}
}

func (s spread) String() string {
	if a, b := number(s.least), number(s.median); a != b {
		return a + " / " + b
	}
	return number(s.median)
}

// number has three digits that matter.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	text := fmt.Sprintf("%.*f", digits, v)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// makeTable is Markdown: minimum / median of each figure.
func makeTable(lines []line) []byte {
	var b bytes.Buffer
	compared := slices.ContainsFunc(lines, func(l line) bool { return l.Relay == rust })
	head := []string{"Case", "Figure", ours}
	if compared {
		head = append(head, rust+" relay", "ours / theirs")
	}
	row(&b, head)
	row(&b, slices.Repeat([]string{"---"}, len(head)))
	for _, c := range cases {
		us, them := choose(lines, ours, c.name), choose(lines, rust, c.name)
		if us.all+them.all == 0 {
			continue
		}
		text := c.text
		for _, f := range c.figures {
			row(&b, cells(text, f, us, them, compared))
			text = ""
		}
		last := []string{"", "runs used; generator, others, % of a core", us.String()}
		if compared {
			last = append(last, them.String(), "")
		}
		row(&b, last)
	}
	return b.Bytes()
}

func row(b *bytes.Buffer, cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

// cells is one row.
func cells(text string, f figure, us, them runs, compared bool) []string {
	value := func(r runs) string {
		if len(r.used) == 0 {
			return "–"
		}
		s := r.spread(f.of)
		if f.larger {
			most := slices.MaxFunc(r.used, func(a, b *bench.Result) int { return cmp.Compare(f.of(a), f.of(b)) })
			return number(f.of(most)) + " / " + number(s.median)
		}
		return s.String()
	}
	row := []string{text, f.name, value(us)}
	if compared {
		row = append(row, value(them), ratio(us, them, f.of))
	}
	return row
}

// String says how the runs went.
func (r runs) String() string {
	if len(r.used) == 0 {
		return fmt.Sprintf("0 of %d", r.all)
	}
	own := r.spread(func(x *bench.Result) float64 { return x.Own })
	others := r.spread(func(x *bench.Result) float64 { return x.Others })
	text := fmt.Sprintf("%d of %d; %.0f, %.0f", len(r.used), r.all, own.median, others.median)
	if r.failed > 0 {
		text += fmt.Sprintf("; %d failed", r.failed)
	}
	if slices.ContainsFunc(r.used, func(x *bench.Result) bool { return x.Saturated }) {
		text += "; **generator at its limit**"
	}
	return text
}
