package bench

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const line = "1234 (a) (b c) S 1 1234 1234 0 -1 4194560 9 0 0 0 250 50 7 8 20 0 9 0 555 1000000 300 18446744073709551615 1 1"
	p, err := parseStat([]byte(line))
	if err != nil || p.CPU != 3*time.Second || p.RSS != 300*int64(os.Getpagesize()) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "1234 (x) S 1", "1234 (x) " + "a b c d e f g h i j k l m n o p q r s t u v w x y z"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q parses", bad)
		}
	}
}

func TestParsePeak(t *testing.T) {
	for text, want := range map[string]int64{
		"Name:\ta\nVmHWM:\t   1234 kB\nVmRSS: 5 kB\n": 1234 << 10, "Name:\ta\n": 0, "VmHWM: kB": 0, "VmHWM: -1 kB\n": 0, "": 0,
	} {
		if got := parsePeak([]byte(text)); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestParseMachine(t *testing.T) {
	busy, err := parseMachine([]byte("cpu  100 20 30 4000 500 6 7 8 9 0\ncpu0 1 1 1 1\n"))
	if err != nil || busy != 171*10*time.Millisecond {
		t.Errorf("%v, %v", busy, err)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu a b c d e f g h i", "intr 1 2 3 4 5 6 7 8"} {
		if _, err := parseMachine([]byte(bad)); err == nil {
			t.Errorf("%q parses", bad)
		}
	}
}

// TestSelf burns CPU and memory and demands that both show.
func TestSelf(t *testing.T) {
	before, err := ReadProcess(os.Getpid())
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	machine, err := ReadMachine()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<20)
	for end := before.CPU + 100*time.Millisecond; ; {
		for i := range block {
			block[i]++
		}
		now, err := ReadProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now.CPU >= end {
			if now.RSS-before.RSS < 32<<20 {
				t.Errorf("64 MiB more show as %d bytes", now.RSS-before.RSS)
			}
			break
		}
	}
	if now, err := ReadMachine(); err != nil || now <= machine {
		t.Errorf("the machine did nothing: %v, %v", now-machine, err)
	}
}
