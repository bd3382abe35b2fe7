package strictjson_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/strictjson"
)

func TestArray(t *testing.T) {
	tests := map[string]struct {
		want []string
		ok   bool
	}{
		`[]`:                                 {[]string{}, true},
		" [ 1 ,\"a\" , {\"b\":[2]}, null]\n": {[]string{"1", `"a"`, `{"b":[2]}`, "null"}, true},
		``:                                   {},
		`null`:                               {},
		`{}`:                                 {},
		`"a"`:                                {},
		`[1`:                                 {},
		`[1,]`:                               {},
		`[1 2]`:                              {},
		`[,1]`:                               {},
		`[1][2]`:                             {},
		`[1] x`:                              {},
		"\ufeff[]":                           {},
		"[\"\xff\"]":                         {},
		`[1,{"a"]`:                           {},
	}
	for in, tt := range tests {
		got, err := strictjson.Array([]byte(in))
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, strictjson.ErrArray) {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if !tt.ok {
			continue
		}
		text := []string{}
		for _, raw := range got {
			text = append(text, string(raw))
		}
		if diff := cmp.Diff(tt.want, text); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}
