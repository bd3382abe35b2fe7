package route

// Wire says what the version of a session can carry.
type Wire uint8

// Wires.
const (
	WireLocal       Wire = iota // no wire: a publisher or reader in this process
	WireLite01                  // moq-lite 01 and 02
	WireLite03                  // moq-lite 03
	WireLite04                  // moq-lite 04
	WireLite05                  // moq-lite 05
	WireLite06                  // moq-lite 06
	WireMoqt                    // moq-transport without the cluster extension
	WireMoqtCluster             // moq-transport with the cluster extension
)

type listForm uint8

const (
	listNone  listForm = iota // no list
	listCount                 // number of hops, sender included
	listFull                  // ids, sender included
	listApart                 // ids without the sender, which is stated once (ANNOUNCE_OK)
)

// names reports whether the list has ids.
func (f listForm) names() bool { return f == listFull || f == listApart }

type costForm uint8

const (
	costNone costForm = iota
	costWarm
	costBoth
)

// wireTraits are the differences between the wires (2.3, R16, R32, R33, R46).
type wireTraits struct {
	name     string
	list     listForm
	cost     costForm
	inPlace  bool // has an in-place update
	repeats  bool // the update is the advertisement repeated
	withdraw bool // an explicit end counts for the withdrawal rule
	excludes bool // announce streams state the peer's identity
}

var wires = [...]wireTraits{
	WireLocal:       {name: "local", list: listFull, cost: costBoth, inPlace: true},
	WireLite01:      {name: "lite-01"},
	WireLite03:      {name: "lite-03", list: listCount},
	WireLite04:      {name: "lite-04", list: listFull, withdraw: true, excludes: true},
	WireLite05:      {name: "lite-05", list: listApart, inPlace: true, repeats: true, withdraw: true, excludes: true},
	WireLite06:      {name: "lite-06", list: listApart, cost: costBoth, inPlace: true, withdraw: true},
	WireMoqt:        {name: "moqt", inPlace: true, repeats: true},
	WireMoqtCluster: {name: "moqt-cluster", list: listFull, cost: costWarm, inPlace: true, repeats: true},
}

// String is a short name such as "lite-06".
func (w Wire) String() string { return w.traits().name }

func (w Wire) traits() *wireTraits {
	if int(w) >= len(wires) {
		return &wireTraits{name: "unknown"}
	}
	return &wires[w]
}
