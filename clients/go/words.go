package momus

// Word is a filter or a trigger of a fault, or a filter of requests in the journal. All filters that are given must fit.
// Names may hold *, ? and [...].
type Word func(map[string]any)

func word(name string, value any) Word { return func(words map[string]any) { words[name] = value } }

func object(name string, value any) map[string]any { return map[string]any{name: value} }

// Once lets a fault act on the first request that matches. Without a trigger it acts on every one.
var Once = word("trigger", "once")

// EveryTime lets a fault act on every request that matches.
var EveryTime = word("trigger", "every_time")

// OnCall lets a fault act on the nth request that matches, counted from 1.
func OnCall(n int) Word { return word("trigger", object("on_call", n)) }

// Times lets a fault act on the first n requests that match.
func Times(n int) Word { return word("trigger", object("times", n)) }

// Probability lets a fault act on each request with this probability; the same seed acts on the same ones.
func Probability(p float64, seed ...int64) Word {
	trigger := object("with_probability", p)
	for _, each := range seed {
		trigger["seed"] = each
	}
	return word("trigger", trigger)
}

// API is the name of a kind of requests, such as OffsetCommit.
func API(name string) Word { return word("api", name) }

// APIs are several of them, for a fault.
func APIs(names ...string) Word { return word("api", names) }

// Versions are those of the API, from first to last, for a fault.
func Versions(first, last int) Word { return word("version", []int{first, last}) }

// ClientID is what a client calls itself.
func ClientID(name string) Word { return word("client_id", name) }

// Principal is who has authenticated, as User:alice.
func Principal(name string) Word { return word("principal", name) }

// Connection is the HOST:PORT of a client.
func Connection(address string) Word { return word("connection", address) }

// Listener is the name of a listener, for a fault.
func Listener(name string) Word { return word("listener", name) }

// OnBroker is the number of a virtual broker, for a fault.
func OnBroker(id int) Word { return word("broker", id) }

// Topic is one that the request names.
func Topic(name string) Word { return word("topic", name) }

// OnPartition is one that the request names together with the topic, for a fault.
func OnPartition(number int) Word { return word("partition", number) }

// OfGroup is a group that the request names.
func OfGroup(name string) Word { return word("group", name) }

// TransactionalID is one that the request names.
func TransactionalID(name string) Word { return word("transactional_id", name) }

// ErrorName is an error with which requests in the journal were answered.
func ErrorName(name string) Word { return word("error", name) }

// Before lets a fault meet the request before it takes effect.
var Before = word("when", "before")

// After lets a fault meet the reply: what the request does is done. Most faults do so unless told otherwise.
var After = word("when", "after")

// Middle lets DisconnectOn cut the reply in its middle.
var Middle = word("when", "middle")

// Route is a kind of requests of the schema registry, such as RegisterSchema.
func Route(name string) Word { return word("route", name) }

// Subject is one of the schema registry.
func Subject(name string) Word { return word("subject", name) }

// FaultName gives a fault a name of your own.
func FaultName(name string) Word { return word("name", name) }

// At is the place after the correlation id of the byte that CorruptReply changes.
func At(place int) Word { return word("at", place) }

// FreeBytes are those that can still be written to a FullDisk.
func FreeBytes(bytes int64) Word { return word("free_bytes", bytes) }

// Status is that of HTTP with which a RegistryFault answers, and its error code.
func Status(status, code int) Word {
	return func(words map[string]any) { words["status"], words["code"] = status, code }
}

// Delay are the milliseconds of a RegistryFault that delays.
func Delay(ms int) Word { return word("ms", ms) }

func said(words []Word, fixed map[string]any) map[string]any {
	for _, each := range words {
		each(fixed)
	}
	return fixed
}

// Partition names a partition in a Message or a Reading.
func Partition(number int) *int { return &number }
