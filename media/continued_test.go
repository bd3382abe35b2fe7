package media_test

import "testing"

// A reader that looks between the START of a returning source and the first frame of the open group that it continues
// must not settle for the group after it (F5, F16).
func TestStartBeforeTheContinuation(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(sub(10))
	r.open(a, 8, 0).send(5)
	v.read()
	v.close()
	a.Close()

	v = r.view(sub(10))
	b := r.track.NewCopy(nil)
	b.Ask(sub(10))
	b.Start(8)
	v.read().got()
	v.start(8)
	r.open(b, 8, 5).send(1).fin()
	v.read().complete(8, 6)
}
