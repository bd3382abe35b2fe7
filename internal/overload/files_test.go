package overload

import "testing"

func TestFiles(t *testing.T) {
	f := NewFiles(64) // keeps 16
	for i, step := range []struct {
		descriptor uint64
		refuse     bool
	}{{3, false}, {47, false}, {48, true}, {47, true}, {40, true}, {39, false}, {47, false}, {63, true}} {
		if got := f.Refuse(step.descriptor); got != step.refuse {
			t.Errorf("step %d, descriptor %d: %v", i, step.descriptor, got)
		}
	}
	for limit, kept := range map[uint64]uint64{16: 16, 1024: 102, 1 << 20: 256} {
		f := NewFiles(limit)
		if limit > kept && f.Refuse(limit-kept-1) || !f.Refuse(limit-kept) {
			t.Errorf("of %d, not %d are kept", limit, kept)
		}
	}
	if (*Files)(nil).Refuse(1 << 30) {
		t.Error("nothing is known, and somebody is refused")
	}
	if FileLimit() == 0 {
		t.Skip("this system does not tell")
	}
}
