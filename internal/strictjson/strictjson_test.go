package strictjson_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/strictjson"
)

func TestObject(t *testing.T) {
	tests := []struct {
		in   string
		want map[string]string
		err  error
	}{
		{`{}`, map[string]string{}, nil},
		{" {\"a\" : 1 ,\n\"b\":[{\"a\":1,\"a\":2}]}\n", map[string]string{"a": "1", "b": `[{"a":1,"a":2}]`}, nil},
		{`{"a":1,"A":2}`, map[string]string{"a": "1", "A": "2"}, nil},
		{`{"a":1,"\u0061":2}`, nil, strictjson.ErrDuplicate},
		{`{"a":1,"a":2}`, nil, strictjson.ErrDuplicate},
		{``, nil, strictjson.ErrSyntax},
		{`null`, nil, strictjson.ErrSyntax},
		{`[]`, nil, strictjson.ErrSyntax},
		{`{"a":1`, nil, strictjson.ErrSyntax},
		{`{"a":1}{}`, nil, strictjson.ErrSyntax},
		{`{"a":1} x`, nil, strictjson.ErrSyntax},
		{`{"a"}`, nil, strictjson.ErrSyntax},
		{`{"a":}`, nil, strictjson.ErrSyntax},
		{`{a:1}`, nil, strictjson.ErrSyntax},
		{`{"a":1,}`, nil, strictjson.ErrSyntax},
		{"{\"a\":\"\xff\"}", nil, strictjson.ErrSyntax},
		{"\ufeff{}", nil, strictjson.ErrSyntax},
	}
	for _, tt := range tests {
		got, err := strictjson.Object([]byte(tt.in))
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: error %v, want %v", tt.in, err, tt.err)
			continue
		}
		var text map[string]string
		if err == nil {
			text = map[string]string{}
		}
		for name, raw := range got {
			text[name] = string(raw)
		}
		if diff := cmp.Diff(tt.want, text); diff != "" {
			t.Errorf("%s: %s", tt.in, diff)
		}
	}
}

func TestMembers(t *testing.T) {
	for raw, want := range map[string][4]bool{ // String, Strings, Number, Bool
		`"a"`:     {true, false, false, false},
		`["a"]`:   {false, true, false, false},
		`[]`:      {false, true, false, false},
		`["a",1]`: {},
		`[null]`:  {},
		`null`:    {},
		`1.5`:     {false, false, true, false},
		`-2`:      {false, false, true, false},
		`1e999`:   {},
		`true`:    {false, false, false, true},
		`false`:   {false, false, false, true},
		`{}`:      {},
		``:        {},
	} {
		m := json.RawMessage(raw)
		var got [4]bool
		_, got[0] = strictjson.String(m)
		_, got[1] = strictjson.Strings(m)
		_, got[2] = strictjson.Number(m)
		_, got[3] = strictjson.Bool(m)
		if got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
}
