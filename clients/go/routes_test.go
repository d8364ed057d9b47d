package momus

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// notOfKits are routes that no test has a use for: the page asks for those with its tag.
var notOfKits = map[string]string{
	"show_step":      "`momus open` and its page steer a kept run",
	"step":           "as well",
	"fetch_step":     "as well",
	"tell_step":      "as well",
	"remove_created": "a proxy removes what a run of pytest has created",
	"list_events":    "momus explore asks",
	"tell_requests":  "momus explore asks",
	"left_wrong":     "momus explore asks",
}

// seen notes the path of each request.
type seen struct {
	lock  sync.Mutex
	calls map[string]bool
}

func (s *seen) RoundTrip(request *http.Request) (*http.Response, error) {
	s.lock.Lock()
	s.calls[request.Method+" "+request.URL.Path] = true
	s.lock.Unlock()
	return http.DefaultTransport.RoundTrip(request)
}

// TestEachRouteHasAMethod calls each method of the kit once: a route of /openapi.json that none of them asks for fails it.
func TestEachRouteHasAMethod(t *testing.T) {
	ctx := context.Background()
	process, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	told := &seen{calls: map[string]bool{}}
	process.client.Transport = told
	if err := process.agree(ctx); err != nil {
		t.Fatal(err)
	}
	callAll(t, process)
	description, err := process.OpenAPI(ctx)
	if err != nil {
		t.Fatal(err)
	}
	missing, routes := []string{}, 0
	for path, methods := range description["paths"].(map[string]any) {
		pattern := regexp.MustCompile("^" + regexp.MustCompile(`\\{\w+\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
		for method, operation := range methods.(map[string]any) {
			words := operation.(map[string]any)
			name := words["operationId"].(string)
			if notOfKits[name] != "" || strings.HasSuffix(name, "_of_default") || words["tags"].([]any)[0] == "page" {
				continue
			}
			routes++
			asked := false
			for call := range told.calls {
				verb, at, _ := strings.Cut(call, " ")
				asked = asked || (strings.EqualFold(verb, method) && pattern.MatchString(at))
			}
			if !asked {
				missing = append(missing, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 || routes < 60 {
		t.Fatalf("of %d routes the kit has no method for:\n%s", routes, strings.Join(missing, "\n"))
	}
}

func callAll(t *testing.T, process *Process) {
	ctx := context.Background()
	for _, call := range []func() error{
		func() error { _, err := process.Clusters(ctx); return err },
		func() error { _, err := process.Routes(ctx); return err },
		func() error { _, err := process.Metrics(ctx); return err },
	} {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	if !process.IsHealthy(ctx) || !process.IsReady(ctx) {
		t.Fatal("it is not ready")
	}
	cluster := process.New(t, ClusterOptions{Brokers: 3, Seed: new(int64), Config: map[string]string{"num.partitions": "2"}})
	cluster.CreateTopic("one", 1, TopicOptions{Replicas: 3, Config: map[string]string{"retention.ms": "1000"}})
	cluster.CreateTopics(map[string]int{"two": 2}, TopicOptions{})
	if loaded := cluster.Load(map[string]any{"topics": []any{map[string]any{"name": "three", "records": []any{map[string]any{"value": "x"}}}}}, "skip"); loaded["topics"] != 1 {
		t.Error(loaded)
	}
	cluster.Produce("two", "a", "b")
	cluster.Consume("two", 2)
	steer(t, cluster)
	groups(t, cluster)
	meet(t, cluster)
	full := cluster.Snapshot()
	cluster.Snapshots()
	fork := cluster.Fork(t)
	fork.Diff(full)
	fork.Remove()
	full.Restore()
	full.Remove()
	cluster.Record()
	if len(cluster.Recording()) == 0 {
		t.Error("an empty recording")
	}
	cluster.EndRecording()
	if cluster.HasRegistry() || !strings.HasPrefix(cluster.Registry(), "http://") || !cluster.HasRegistry() {
		t.Error("the registry")
	}
	cluster.Reset()
	cluster.Metrics()
	cluster.Connections()
	guarded := process.New(t, ClusterOptions{Security: "sasl_ssl", Users: map[string]string{"alice": "secret"},
		Config: map[string]string{"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}})
	secure(t, guarded)
	guarded.Remove()
	cluster.Remove()
	if err := process.HangUp(ctx); err != nil {
		t.Error(err)
	}
}

func steer(t *testing.T, cluster *Cluster) {
	cluster.Clock.Set(cluster.Clock.Now().Add(time.Minute))
	cluster.Clock.PassWaits(time.Second)
	cluster.Clock.Resume()
	cluster.Brokers.Stop(2)
	cluster.Brokers.Start(2)
	cluster.Brokers.Lag(2)
	cluster.Brokers.Release(2)
	cluster.Brokers.Pause(3)
	if found := cluster.Brokers.List(); len(found) != 3 || !found[2].Paused || !found[1].Up {
		t.Error(found)
	}
	cluster.Brokers.Resume(3)
}

func groups(t *testing.T, cluster *Cluster) {
	cluster.Load(map[string]any{"groups": []any{map[string]any{"name": "billing", "offsets": []any{map[string]any{"topic": "two", "partition": 0, "offset": 1}}}}}, "skip")
	cluster.WaitForCommitted("billing", Offsets{"two": {0: 1}}, time.Second)
	cluster.WaitForLag("billing", 1, time.Second, "two")
	cluster.WaitForGroup("billing", "empty", 0, time.Second)
	if is := cluster.Group("billing"); is.State != "Empty" {
		t.Error(is)
	}
	if found := cluster.Committed("billing"); found["two"][0] != 1 {
		t.Error(found)
	}
	for _, call := range []func(c *Cluster){
		func(c *Cluster) { c.Rebalance("billing") },
		func(c *Cluster) { c.ExpelMember("billing", "nobody") },
	} {
		if err := cluster.Try(call); err == nil {
			t.Error("a group without members has one")
		}
	}
	cluster.DeleteGroup("billing")
}

func meet(t *testing.T, cluster *Cluster) {
	if kinds := cluster.Faults.Kinds(); len(kinds) < 14 {
		t.Error(kinds)
	}
	faults := []*Fault{
		cluster.Faults.InjectError("Fetch", "NOT_LEADER_OR_FOLLOWER", Times(2), Topic("orders"), OnPartition(0), Versions(0, 99)),
		cluster.Faults.DelayOn("", time.Second, APIs("EndTxn", "Produce"), OnCall(5), TransactionalID("x*")),
		cluster.Faults.MakeEvent("rebalance", "EndTxn", After),
		cluster.Faults.Hold("EndTxn", Before, Probability(0.5, 7), Principal("User:alice")),
		cluster.Faults.DisconnectOn("EndTxn", Middle, Listener("L"), OnBroker(2)),
		cluster.Faults.BlackholeClient("nobody", Connection("127.0.0.1:1"), EveryTime),
		cluster.Faults.Throttle(5, ClientID("nobody"), FaultName("slow")),
		cluster.Faults.CorruptReply("EndTxn", At(3)),
		cluster.Faults.DeliverTwice("EndTxn"),
		cluster.Faults.SlowDisk(time.Millisecond, Topic("nothing")),
		cluster.Faults.FullDisk(FreeBytes(1<<40), Topic("nothing")),
		cluster.Faults.FailWrite(Topic("nothing")),
		cluster.Faults.FailFsync(Topic("nothing")),
		cluster.Faults.FailDeadLetter("REQUEST_TIMED_OUT", OfGroup("g")),
		cluster.Faults.RegistryFault("error", Status(503, 50003), Route("RegisterSchema"), Subject("s")),
		cluster.Faults.RegistryFault("delay", Delay(5), After),
	}
	kinds := map[string]bool{}
	for _, each := range cluster.Faults.List() {
		kinds[each.Kind] = true
	}
	if known := cluster.Faults.Kinds(); len(kinds) != len(known) {
		t.Errorf("the kit sets %d kinds of faults, there are %d", len(kinds), len(known))
	}
	if is := faults[0].State(); is.Calls != 0 || is.Words["error"] != "NOT_LEADER_OR_FOLLOWER" {
		t.Error(is)
	}
	faults[0].Remove()
	cluster.Faults.Clear()
	held := cluster.Faults.Hold("ApiVersions", Once)
	done := make(chan bool)
	go func() { greet(t, cluster); close(done) }()
	held.WaitUntilHeld(1, 10*time.Second)
	if held.Held() != 1 || held.Release() != 1 {
		t.Error(held.State())
	}
	<-done
	held.WaitUntilHit(1, 10*time.Second)
	if held.Hits() != 1 || held.Calls() != 1 {
		t.Error(held.State())
	}
	cluster.Journal.Verify(AtLeast(1), API("ApiVersions"))
	cluster.Journal.Verify(Between(0, 5), API("ApiVersions"), ErrorName("NOT_COORDINATOR"))
	if found := cluster.Journal.Entries(API("ApiVersions")); len(found) != 1 || found[0].Fault == "" || len(cluster.Journal.Whys()) != 0 {
		t.Error(found)
	}
	if !strings.Contains(cluster.Journal.Last(5), "ApiVersions") {
		t.Error(cluster.Journal.Last(5))
	}
	cluster.Journal.Expect(Exactly(7), API("EndTxn"))
	cluster.Journal.ExpectNothing()
	cluster.Journal.Keep(1 << 20)
	cluster.Journal.Clear()
	if left := cluster.Unmet(); len(left) != 0 {
		t.Error(left)
	}
}

func secure(t *testing.T, cluster *Cluster) {
	cluster.Users.Add("carol", "pencil")
	if found := cluster.Users.List(); !slices.Equal(found, []string{"alice", "carol"}) || cluster.Users.Passwords()["carol"] != "pencil" {
		t.Error(found)
	}
	cluster.Users.Remove("carol")
	cluster.Acls.Allow("alice", "topic", "orders", "read", "describe")
	cluster.Acls.Deny("User:bob", "group", "billing", "read")
	if found := cluster.Acls.List(); len(found) != 3 || found[0].Host != "*" {
		t.Error(found)
	}
	if removed := cluster.Acls.Remove("bob"); removed != 1 {
		t.Error(removed)
	}
	cluster.Certificates.Expire("server")
	cluster.Certificates.Issue("server", "localhost")
	cluster.Certificates.Rotate()
	cluster.Certificates.RotateAuthority()
	settings := cluster.ClientSettings("confluent", "alice")
	if settings["sasl.username"] != "alice" || !strings.HasPrefix(settings["ssl.ca.location"], "/") {
		t.Error(settings)
	}
}
