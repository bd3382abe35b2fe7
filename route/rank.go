package route

import (
	"cmp"
	"slices"
)

// Step is the key that decided between two routes (3.1).
type Step uint8

// Steps, in the order in which they are compared.
const (
	StepNone     Step = iota // nothing to decide: the first, or the only one
	StepPrefix               // longer covering prefix
	StepIdentity             // fully identified before anonymous
	StepWarm                 // lower warm cost
	StepCold                 // lower cold cost
	StepLength               // shorter hop list
	StepAge                  // newer
)

var stepNames = [...]string{"", "longest prefix", "identified", "warm cost", "cold cost", "shorter list", "newest"}

// String says in words why the better route is better.
func (s Step) String() string { return stepNames[min(int(s), len(stepNames)-1)] }

// ranking are the steps within one prefix. Each is negative where a is better than b.
var ranking = [...]struct {
	step    Step
	compare func(a, b *advert) int
}{
	{StepIdentity, compareIdentity},
	{StepWarm, compareWarm},
	{StepCold, compareCold},
	{StepLength, compareLength},
	{StepAge, compareAge},
}

func compareIdentity(a, b *advert) int {
	switch x, y := a.content.list.anon, b.content.list.anon; {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}

func compareWarm(a, b *advert) int { return cmp.Compare(a.content.cost.Warm, b.content.cost.Warm) }

func compareCold(a, b *advert) int { return cmp.Compare(a.content.cost.Cold, b.content.cost.Cold) }

// compareLength also puts what is published in this process, with its empty list, before any session's
// route of equal cost (R20).
func compareLength(a, b *advert) int {
	return cmp.Compare(len(a.content.list.hops), len(b.content.list.hops))
}

func compareAge(a, b *advert) int { return cmp.Compare(b.seq, a.seq) }

// decide compares two routes at one prefix and names the step that decided.
func decide(a, b *advert) (int, Step) {
	for i := range ranking {
		if c := ranking[i].compare(a, b); c != 0 {
			return c, ranking[i].step
		}
	}
	return 0, StepNone
}

func rank(a, b *advert) int {
	c, _ := decide(a, b)
	return c
}

// insert places a in the ranked routes of its node.
func (n *node) insert(a *advert) {
	i, _ := slices.BinarySearchFunc(n.routes, a, rank)
	n.routes = slices.Insert(n.routes, i, a)
}

// remove takes a out of the routes, or the parked adverts, of its node.
func (n *node) remove(a *advert) {
	if a.reason != 0 {
		i := slices.Index(n.rare.parked, a)
		n.rare.parked = slices.Delete(n.rare.parked, i, i+1)
		return
	}
	i, _ := slices.BinarySearchFunc(n.routes, a, rank)
	n.routes = slices.Delete(n.routes, i, i+1)
}
