package drive

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		summary string
		want    []string
	}{
		"good":          {`{"ok":true,"last":100,"gaps":[],"missing":0,"twice":0,"longest_stall_ms":40.5}`, nil},
		"good, js":      {`{"ok":true,"last":99,"gaps":[],"wrong":0,"twice":0,"longest_stall_ms":999}`, nil},
		"good, rust":    {`{"ok":true,"last":[100],"gaps":[],"wrong":0,"twice":0,"ended":null,"longest_stall_ms":999}`, nil},
		"nothing came":  {`{"ok":false,"frames":0}`, []string{"not ok", "the last group is 0, not 99"}},
		"stopped short": {`{"ok":true,"last":98}`, []string{"the last group is 98, not 99"}},
		"short, rust":   {`{"ok":true,"last":[98]}`, []string{"the last group is 98, not 99"}},
		"a pause":       {`{"ok":true,"last":100,"longest_stall_ms":1001}`, []string{"no frame for 1.001s"}},
		"twice":         {`{"ok":true,"last":100,"twice":2}`, []string{"2 twice"}},
		"missing":       {`{"ok":true,"last":100,"missing":1,"cut":3,"wrong":4}`, []string{"1 missing", "3 cut", "4 wrong"}},
		"gaps":          {`{"ok":true,"last":100,"gaps":[[5,0,30]]}`, []string{"gaps [[5 0 30]]"}},
		"ended":         {`{"ok":true,"last":100,"ended":"track ended"}`, []string{"ended: track ended"}},
	} {
		var e Event
		if err := json.Unmarshal([]byte(c.summary), &e); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, Faults(e, time.Second, 100)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
