package route_test

import (
	"testing"

	"github.com/moqmesh/moqmesh/route"
)

// TestLinkPrice is R14, E9 and E10.
func TestLinkPrice(t *testing.T) {
	price := func(v uint64) *uint64 { return &v }
	tests := []struct {
		own, declared *uint64
		want          uint64
	}{
		{nil, nil, 1},
		{nil, price(0), 0},
		{nil, price(3), 3},
		{price(10), price(3), 10},
		{price(0), price(3), 0},
		{price(1 << 63), nil, route.MaxCost},
		{nil, price(1 << 63), route.MaxCost},
	}
	for _, tt := range tests {
		if got := route.LinkPrice(tt.own, tt.declared); got != tt.want {
			t.Errorf("LinkPrice(%v, %v) = %d, want %d", tt.own, tt.declared, got, tt.want)
		}
	}
}

func TestCompareCosts(t *testing.T) {
	ordered := []route.Cost{{0, 0}, {0, 5}, {1, 0}, {1, route.MaxCost}, {route.MaxSum, 0}, {route.MaxCost, 0}, {route.MaxCost, route.MaxCost}}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.Compare(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%v compared with %v: %d", a, b, got)
			}
		}
	}
}
