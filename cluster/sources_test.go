package cluster_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/cluster"
	"pgregory.net/rapid"
)

// entry parses one entry that is known to be good.
func entry(t interface {
	Helper()
	Fatal(...any)
}, text string,
) cluster.Entry {
	t.Helper()
	list, err := cluster.Parse([]any{text}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Entries[0]
}

func show(a cluster.Action) string {
	if a.Kind == cluster.ActionDrop {
		return fmt.Sprintf("%v %s", a.Kind, a.Key)
	}
	cost, _ := a.Entry.Price()
	return fmt.Sprintf("%v %s cost %d by %v", a.Kind, a.Entry.Key(), cost, a.Source)
}

// TestReconcile walks the table of reconciliation across sources (cluster.md 3).
func TestReconcile(t *testing.T) {
	const (
		connect, api, lan = cluster.SourceConnect, cluster.SourceAPI, cluster.SourceLAN
		a, b, b2, b3      = "https://a/?cost=1", "https://b/?cost=1", "https://b/?cost=2", "https://b/?cost=3"
	)
	type step struct {
		src  cluster.Source
		list []string
		want []string
	}
	one := func(src cluster.Source, list []string, want ...string) step { return step{src, list, want} }
	tests := map[string][]step{
		"first source dials": {
			one(api, []string{b}, "dial https://b/ cost 1 by connect_api"),
		},
		"another source names it": {
			one(connect, []string{b}, "dial https://b/ cost 1 by connect"),
			one(api, []string{b}),
			one(lan, []string{b2}),
		},
		"a later source of higher rank does not take over": {
			one(lan, []string{b}, "dial https://b/ cost 1 by lan"),
			one(connect, []string{b2}),
		},
		"active source changes": {
			one(api, []string{b}, "dial https://b/ cost 1 by connect_api"),
			one(lan, []string{b}),
			one(api, []string{b2}, "redial https://b/ cost 2 by connect_api"),
		},
		"other source changes": {
			one(api, []string{b}, "dial https://b/ cost 1 by connect_api"),
			one(lan, []string{b2}),
			one(lan, []string{b3}),
			one(api, nil, "redial https://b/ cost 3 by lan"),
		},
		"identical list": {
			one(api, []string{b, a}, "dial https://a/ cost 1 by connect_api", "dial https://b/ cost 1 by connect_api"),
			one(api, []string{a, b}),
		},
		"active drops, next has other settings": {
			one(lan, []string{b}, "dial https://b/ cost 1 by lan"),
			one(api, []string{b2}),
			one(connect, []string{b3}),
			one(lan, nil, "redial https://b/ cost 3 by connect"),
		},
		"active drops, next in order is the API": {
			one(connect, []string{a}, "dial https://a/ cost 1 by connect"),
			one(lan, []string{b}, "dial https://b/ cost 1 by lan"),
			one(api, []string{b2}),
			one(lan, nil, "redial https://b/ cost 2 by connect_api"),
		},
		"active drops, next has the same settings": {
			one(api, []string{b}, "dial https://b/ cost 1 by connect_api"),
			one(lan, []string{b}),
			one(api, nil),
			one(lan, []string{b2}, "redial https://b/ cost 2 by lan"), // so lan was active
		},
		"other source drops": {
			one(api, []string{b}, "dial https://b/ cost 1 by connect_api"),
			one(lan, []string{b2}),
			one(lan, nil),
			one(api, nil, "drop https://b/"),
		},
		"last source drops": {
			one(api, []string{a, b}, "dial https://a/ cost 1 by connect_api", "dial https://b/ cost 1 by connect_api"),
			one(api, []string{a}, "drop https://b/"),
			one(api, nil, "drop https://a/"),
		},
		"connect is never dropped": {
			one(connect, []string{a, b}, "dial https://a/ cost 1 by connect", "dial https://b/ cost 1 by connect"),
			one(connect, []string{b2}, "redial https://b/ cost 2 by connect"),
			one(connect, nil),
			one(api, []string{a}),
			one(api, nil),
		},
		"dropped and back": {
			one(api, []string{b}, "dial https://b/ cost 1 by connect_api"),
			one(api, nil, "drop https://b/"),
			one(api, []string{b}, "dial https://b/ cost 1 by connect_api"),
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var peers cluster.Peers
			for i, s := range steps {
				var list []cluster.Entry
				for _, text := range s.list {
					list = append(list, entry(t, text))
				}
				var got []string
				for _, action := range peers.Set(s.src, list) {
					got = append(got, show(action))
				}
				if diff := cmp.Diff(s.want, got); diff != "" {
					t.Fatalf("step %d: %s", i+1, diff)
				}
			}
		})
	}
}

// TestReconcileAgainstModel holds Peers against what must be true after every change: the dialed settings are those
// of the active source, which names the key; a key is dialed iff some source names it; and nothing is redialed unless
// its settings changed.
func TestReconcileAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var peers cluster.Peers
		said := [3]map[string]cluster.Entry{{}, {}, {}}
		running := map[string]cluster.Entry{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			src := cluster.Source(rapid.IntRange(0, 2).Draw(t, "source"))
			list := map[string]cluster.Entry{}
			for range rapid.IntRange(0, 4).Draw(t, "entries") {
				e := entry(t, fmt.Sprintf("https://%s/?cost=%d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "host"), rapid.IntRange(1, 3).Draw(t, "cost")))
				list[e.Key()] = e
			}
			if src != cluster.SourceConnect {
				clear(said[src])
			}
			maps.Copy(said[src], list)
			for _, a := range peers.Set(src, slices.Collect(maps.Values(list))) {
				old, dialed := running[a.Key]
				switch a.Kind {
				case cluster.ActionDial:
					if dialed {
						t.Fatalf("%s dialed twice", a.Key)
					}
					running[a.Key] = a.Entry
				case cluster.ActionRedial:
					if !dialed || old.Same(a.Entry) {
						t.Fatalf("%s redialed without need", a.Key)
					}
					running[a.Key] = a.Entry
				case cluster.ActionDrop:
					if !dialed {
						t.Fatalf("%s dropped twice", a.Key)
					}
					delete(running, a.Key)
				}
			}
			named := map[string]bool{}
			for _, list := range said {
				for key := range list {
					named[key] = true
				}
			}
			if len(named) != len(running) {
				t.Fatalf("%d keys are named, %d dialed", len(named), len(running))
			}
			for key, e := range running {
				active, ok := peers.Active(key)
				if !ok || !said[active][key].Same(e) {
					t.Fatalf("%s runs with settings that are not those of %v", key, active)
				}
			}
		}
	})
}
