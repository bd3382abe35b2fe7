package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/moqmesh/moqmesh/internal/strictjson"
)

// Keys finds the key of a token. Implementations are safe for concurrent use.
type Keys interface {
	// Key returns the key of an id, or, for the empty id, the one that tokens without an id are signed with. It fails
	// with ErrNoKey where there is none, which makes the token worthless, and with ErrUnavailable where that could not
	// be found out. It may block until ctx ends.
	Key(ctx context.Context, id string) (*Key, error)
}

// ErrUnavailable says that keys could not be looked up, which says nothing about the token.
var ErrUnavailable = errors.New("keys are unavailable")

// Set is a fixed set of keys. A single key is a set too.
type Set struct {
	keys []*Key
	byID map[string]*Key
}

var _ Keys = (*Set)(nil)

// NewSet makes a set of at least one key. Two keys of one id are an error.
func NewSet(keys ...*Key) (*Set, error) {
	if len(keys) == 0 {
		return nil, badKey("the set has no keys")
	}
	s := &Set{keys: keys, byID: make(map[string]*Key)}
	for _, k := range keys {
		if s.byID[k.id] != nil && k.id != "" {
			return nil, badKey("two keys have the id %s", k.id)
		}
		s.byID[k.id] = k
	}
	return s, nil
}

// Key implements Keys: a token with an id needs the key of that id, one without is good only where there is just one
// key. A key alone that has no id is good for every token.
func (s *Set) Key(_ context.Context, id string) (*Key, error) {
	if len(s.keys) == 1 && (id == "" || s.keys[0].id == "") {
		return s.keys[0], nil
	}
	if k := s.byID[id]; k != nil && id != "" {
		return k, nil
	}
	return nil, ErrNoKey
}

// ParseSet reads a key file or a set of keys, {"keys": […]}, in either form of key files. Every key must be usable.
func ParseSet(data []byte) (*Set, error) {
	if len(data) > maxKeyFile {
		return nil, badKey("larger than %d bytes", maxKeyFile)
	}
	text, err := plainJSON(data)
	if err != nil {
		return nil, err
	}
	items, isSet, err := members(text)
	switch {
	case err != nil:
		return nil, err
	case !isSet:
		k, err := parseJWK(text)
		if err != nil {
			return nil, err
		}
		return NewSet(k)
	}
	keys := make([]*Key, len(items))
	for i, item := range items {
		if keys[i], err = parseJWK(item); err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
	}
	return NewSet(keys...)
}

// members returns the keys of a set that are not looked into yet; isSet is false for a single key.
func members(text []byte) (items []json.RawMessage, isSet bool, err error) {
	object, err := strictjson.Object(text)
	if err != nil {
		return nil, false, badKey("%w", err)
	}
	raw, isSet := object["keys"]
	if isSet && (len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &items) != nil) {
		return nil, true, badKey("keys is not a list")
	}
	return items, isSet, nil
}

// Open reads a file that holds a key or a set of them.
func Open(name string) (*Set, error) {
	data, err := readKeyFile(name)
	if err != nil {
		return nil, err
	}
	s, err := ParseSet(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func readKeyFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxKeyFile+1))
}

// Dir finds keys in a directory: the key of id x is in x.jwk. Files are read for every token, so that keys come, change
// and go without a restart. While a file cannot be read or understood, the last good key of that id stays.
type Dir struct {
	path string

	mu   sync.Mutex
	last map[string]*Key
}

var _ Keys = (*Dir)(nil)

// maxRemembered bounds the keys that a Dir keeps against bad files.
const maxRemembered = 1024

// OpenDir checks that there is such a directory. It may still be empty.
func OpenDir(path string) (*Dir, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, last: make(map[string]*Key)}, nil
}

// Key implements Keys. Tokens without an id have no key here.
func (d *Dir) Key(_ context.Context, id string) (*Key, error) {
	if !ValidID(id) {
		return nil, ErrNoKey
	}
	data, err := readKeyFile(filepath.Join(d.path, id+".jwk"))
	var k *Key
	if err == nil {
		if k, err = Parse(data); err == nil && k.id != "" && k.id != id {
			err = badKey("its kid is another")
		}
	}
	gone := errors.Is(err, fs.ErrNotExist)
	if gone { // the file, or all of them?
		_, lost := os.Stat(d.path)
		gone = lost == nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case gone:
		delete(d.last, id)
		return nil, ErrNoKey
	case err != nil && d.last[id] != nil:
		return d.last[id], nil
	case err != nil:
		return nil, fmt.Errorf("%w: %s.jwk: %w", ErrUnavailable, id, err)
	}
	if len(d.last) < maxRemembered || d.last[id] != nil {
		d.last[id] = k
	}
	return k, nil
}
