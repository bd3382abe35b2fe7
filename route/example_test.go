package route_test

import (
	"fmt"
	"time"

	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

// A viewer is told of a broadcast at once, of a better way to it 300 ms later. A request takes it immediately.
func Example() {
	table := route.New(route.Config{Hop: 1})
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	apply := func(ms int, e route.Event) {
		effects, err := table.Apply(at(ms), e)
		if err != nil {
			fmt.Println(err)
		}
		print := func(effects []route.Effect) {
			for _, e := range effects {
				if tell, ok := e.(route.Tell); ok {
					fmt.Println("tell the viewer:", tell.Name, tell.Hops, tell.Cost.Warm)
				}
			}
		}
		print(effects)
		print(table.Expire(at(ms + 300)))
	}
	for _, s := range []route.SessionInfo{
		{ID: 2, Hop: 2, Wire: route.WireLite06, Price: 10, Source: route.SourcePeer, Publish: paths.All},
		{ID: 3, Hop: 3, Wire: route.WireLite06, Price: 1, Source: route.SourcePeer, Publish: paths.All},
		{ID: 4, Assigned: 1234, Wire: route.WireLite06, Subscribe: paths.All},
	} {
		apply(0, route.SessionUp{SessionInfo: s})
	}
	apply(0, route.Listen{Consumer: 1, Session: 4})
	apply(0, route.Announce{
		Session: 2, Advert: 1, Prefix: "room", Advertised: route.Advertised{Hops: []route.Hop{9}, Sender: 2},
	})
	apply(1000, route.Announce{
		Session: 3, Advert: 1, Prefix: "room", Advertised: route.Advertised{Hops: []route.Hop{9}, Sender: 3},
	})
	best, _ := table.Lookup("room", table.Requester(4))
	fmt.Println("a request goes to session", best.Session)
	// Output:
	// tell the viewer: room [9 2] 10
	// tell the viewer: room [9 3] 1
	// a request goes to session 3
}
