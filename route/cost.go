package route

import "cmp"

// LinkPrice is the price of a link: our own configured one, else what the peer declared, else 1 (R14).
func LinkPrice(own, declared *uint64) uint64 {
	switch {
	case own != nil:
		return min(*own, MaxCost)
	case declared != nil:
		return min(*declared, MaxCost)
	}
	return 1
}

// worst is the price of a draining route (R40).
var worst = Cost{MaxCost, MaxCost}

// Compare orders costs: warm first, then cold.
func (c Cost) Compare(o Cost) int {
	return cmp.Or(cmp.Compare(c.Warm, o.Warm), cmp.Compare(c.Cold, o.Cold))
}

// charge adds the price of a link to both halves (R13).
func (c Cost) charge(price uint64) Cost { return Cost{add(c.Warm, price), add(c.Cold, price)} }

// add stops at MaxSum; MaxCost is no number and stays (R15).
func add(v, price uint64) uint64 {
	if v >= MaxCost {
		return MaxCost
	}
	return min(v+min(price, MaxCost), MaxSum) // no overflow: both are below 2^62
}

// received is the cost of an advertisement before the link is charged: as sent, clamped (R15), and filled in
// where the wire cannot say (R16). hops is the length of the list as received, the sender included.
func received(wire Wire, sent Cost, hops int) Cost {
	sent = Cost{min(sent.Warm, MaxCost), min(sent.Cold, MaxCost)}
	switch wire.traits().cost {
	case costBoth:
		return sent
	case costWarm:
		return Cost{sent.Warm, MaxCost}
	default:
		if hops > 1 {
			return Cost{MaxSum, MaxCost} // a relay forwarded it at a price that the wire dropped
		}
		return Cost{0, MaxCost}
	}
}
