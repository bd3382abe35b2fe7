package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/config"
)

func TestPositions(t *testing.T) {
	doc := "\ufeff# [not.a.table]\n" +
		"top = 1 # comment = x\n" + // 2
		"\n" +
		"[listen]\r\n" + // 4
		"bind = '''\n" + // 5
		"x = 1\n" +
		"'''\n" +
		"tls.cert = [ # comment ]\n" + // 8
		"  \"a]\", # ]\n" + // 9
		"  'b',\n" + // 10
		"]\n" +
		"text = \"\"\"a\\\n" + // 12
		"  b = \\\" 2\n" +
		"c\"\"\"\"\n" +
		"quoted = \"a \\\" = [\"\n" + // 15
		"\"a.b\" . \"c d\" = 1979-05-27T07:32:00Z\n" + // 16
		"[ cluster . 'x' ]\n" + // 17
		"y = { url = \"u\", z = { a.b = 1 }, l = [ { k = 1 }, 2 ] }\n" + // 18
		"[[peer]]\n" + // 19
		"url = 1\n" +
		"[[peer]]\n" + // 21
		"url = 2\n" +
		"[peer.sub]\n" + // 23
		"v = +1_000.5e3\n"
	if err := toml.Unmarshal([]byte(doc), &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"top": 2, "listen": 4, "listen.bind": 5, "listen.tls": 8, "listen.tls.cert": 8, "listen.tls.cert[0]": 9, "listen.tls.cert[1]": 10,
		"listen.text": 12, "listen.quoted": 15, `listen."a.b"`: 16, `listen."a.b".c d`: 16,
		"cluster": 17, "cluster.x": 17, "cluster.x.y": 18, "cluster.x.y.url": 18, "cluster.x.y.z": 18, "cluster.x.y.z.a": 18, "cluster.x.y.z.a.b": 18,
		"cluster.x.y.l": 18, "cluster.x.y.l[0]": 18, "cluster.x.y.l[0].k": 18, "cluster.x.y.l[1]": 18,
		"peer[0]": 19, "peer[0].url": 20, "peer[1]": 21, "peer[1].url": 22, "peer[1].sub": 23, "peer[1].sub.v": 24,
	}
	if diff := cmp.Diff(want, config.Positions(doc)); diff != "" {
		t.Error(diff)
	}
}

// FuzzPositions: whatever the text, the scanner ends; and in valid TOML it finds every key that the library finds.
func FuzzPositions(f *testing.F) {
	for _, seed := range []string{
		"", "a", "a=", "[", "[[", "[[a]]\n[[a]]\nb=1", "a=[", "a={", "a='''", "a=\"\\", "\"a", "a = [[1,2],{b=1}]", "a.b.c = 1\n[x.\"y z\"]\nq=''",
		"a = {b = 1, c = [\n1,\n{d=2}]}", "a=\"\"\"\"\"\"\"\"", "=", "]", "a]=1", "[a]]\nb=1", "a=[,]", "a={,}", "\x00", "a=1\r\nb=2", "'a\"' = 1",
		config.Example(),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		found := config.Positions(doc)
		for path, line := range found {
			if line < 1 || line > strings.Count(doc, "\n")+1 {
				t.Fatalf("%q is in line %d", path, line)
			}
		}
		var tree map[string]any
		meta, err := toml.Decode(doc, &tree)
		if err != nil || strings.HasPrefix(doc, "\xff\xfe") || strings.HasPrefix(doc, "\xfe\xff") {
			return
		}
		for _, key := range meta.Keys() {
			if strings.ContainsAny(strings.Join(key, ""), "\"'\\.[] \t") || slices.Contains(key, "") || inArray(tree, key) {
				continue // spelled differently in paths, or numbered there
			}
			path := strings.Join(key, ".")
			if _, ok := found[path]; !ok {
				t.Fatalf("%q is not found in %q: %v", path, doc, found)
			}
		}
	})
}

// inArray reports whether a key lies in a list.
func inArray(tree map[string]any, key toml.Key) bool {
	var at any = tree
	for _, part := range key {
		table, ok := at.(map[string]any)
		if !ok {
			return true
		}
		at = table[part]
	}
	_, ok := at.([]map[string]any)
	return ok
}
