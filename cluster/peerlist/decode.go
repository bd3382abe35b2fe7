package peerlist

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/internal/strictjson"
)

// maxPeers bounds a list: each peer is a dial loop.
const maxPeers = 4096

// ErrTooMany is the error for a list of more than 4096 entries.
var ErrTooMany = errors.New("the list has too many entries")

// Parse reads a list as a whole: a JSON array of URLs and of objects with url, cost, egress and token. An entry
// without scheme stands for https://<entry>/; those that name self are left out. No error quotes a token.
func Parse(data []byte, self cluster.Node) (cluster.List, error) {
	raw, err := strictjson.Array(data)
	if err != nil {
		return cluster.List{}, err
	}
	if len(raw) > maxPeers {
		return cluster.List{}, ErrTooMany
	}
	values := make([]any, len(raw))
	for i, r := range raw {
		if values[i], err = entry(r); err != nil {
			return cluster.List{}, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	return cluster.Parse(values, cluster.Options{Self: self, BareHosts: true})
}

// entry brings an element into the form that package cluster reads. What has no place there comes out as something
// that it refuses.
func entry(raw json.RawMessage) (any, error) {
	if text, ok := strictjson.String(raw); ok {
		return text, nil
	}
	if raw[0] != '{' {
		return nil, nil //nolint:nilnil // no value, which is not an entry
	}
	members, err := strictjson.Object(raw)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]any, len(members))
	for name, m := range members {
		fields[name] = scalar(m)
	}
	return fields, nil
}

func scalar(raw json.RawMessage) any {
	if text, ok := strictjson.String(raw); ok {
		return text
	}
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return n
	}
	return nil
}
