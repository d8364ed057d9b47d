package momus

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func started(t *testing.T, options Options) *Broker {
	t.Helper()
	broker, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	return broker
}

func TestClustersOfOneProcessAreApart(t *testing.T) {
	broker := started(t, Options{Config: map[string]string{"num.partitions": "3"}})
	for _, name := range []string{"one", "two"} {
		cluster, err := broker.NewCluster(ClusterOptions{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Produce("orders", Record{Key: "table 4", Value: name}); err != nil {
			t.Fatal(err)
		}
		found, err := cluster.Consume("orders", 1, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Value != name || found[0].Key != "table 4" {
			t.Fatalf("%s holds %v", name, found)
		}
		if err := cluster.Reset(); err != nil {
			t.Fatal(err)
		}
		if found, err := cluster.Consume("orders", 0, 0); err == nil || !strings.Contains(err.Error(), "no topic orders") {
			t.Fatalf("a reset left %v, %v", found, err)
		}
		if err := cluster.Remove(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.CreateTopic("t", 1); err == nil {
			t.Fatal("a cluster that was removed makes topics")
		}
	}
}

func TestAllRecordsAreConsumedHoweverManyAnswersTheyTake(t *testing.T) {
	broker := started(t, Options{})
	if err := broker.CreateTopic("t", 2); err != nil {
		t.Fatal(err)
	}
	records := make([]Record, mostRecords+5)
	for i := range records {
		records[i].Value, records[i].Partition = "x", Partition(0)
	}
	if _, err := broker.Produce("t", append(records, Record{Partition: Partition(1), Value: "last"})...); err != nil {
		t.Fatal(err)
	}
	for _, least := range []int{0, mostRecords + 6} {
		found, err := broker.Consume("t", least, 0)
		if err != nil || len(found) != mostRecords+6 || found[len(found)-1].Value != "last" {
			t.Fatal(len(found), err)
		}
	}
	if found, err := broker.Consume("%74", 0, 0); err == nil {
		t.Fatal("another topic's records", len(found))
	}
	if _, err := broker.Produce("%74", Record{Value: "x"}); err == nil {
		t.Fatal("written to another topic")
	}
	if found, err := broker.Consume("t", mostRecords+7, 0); err == nil || len(found) != mostRecords+6 {
		t.Fatal(len(found), err)
	}
}

func TestClockFaultsAndBrokersAreSteered(t *testing.T) {
	broker := started(t, Options{Brokers: 3})
	if strings.Count(broker.BootstrapServers, ",") != 2 {
		t.Fatal(broker.BootstrapServers)
	}
	for step, err := range []error{
		broker.AdvanceClock(8 * 24 * time.Hour),
		broker.AddFault(fault),
		broker.ClearFaults(),
		broker.StopBroker(2),
		broker.StartBroker(2),
	} {
		if err != nil {
			t.Fatal(step, err)
		}
	}
	before := time.Now().Add(7 * 24 * time.Hour).UnixMilli()
	if _, err := broker.Produce("t", Record{Value: "later"}); err != nil {
		t.Fatal(err)
	}
	found, err := broker.Consume("t", 1, 10*time.Second)
	if err != nil || found[0].TimestampMs < before {
		t.Fatal("the clock has not moved", found, err)
	}
	if err := broker.StopBroker(9); err == nil || !strings.Contains(err.Error(), "no such broker: 9") {
		t.Fatal(err)
	}
}

func TestBrokerThatRunsIsReachedByItsAddress(t *testing.T) {
	broker := started(t, Options{})
	other, err := Connect(broker.control)
	if err != nil {
		t.Fatal(err)
	}
	if other.BootstrapServers != broker.BootstrapServers {
		t.Fatal(other.BootstrapServers)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := broker.CreateTopic("t", 1); err != nil {
		t.Fatal("Close of a broker that was only connected has ended it", err)
	}
}

func TestEndRemovesTheDataAndAFailedStartSaysWhy(t *testing.T) {
	broker := started(t, Options{})
	dir := broker.dataDir
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Fatal(dir, err)
	}
	if _, err := Start(Options{Command: []string{"no-such-momus"}}); err == nil || !strings.Contains(err.Error(), "no-such-momus") {
		t.Fatal(err)
	}
	if _, err := Start(Options{Config: map[string]string{"num.partitions": "none"}}); err == nil {
		t.Fatal("a broker with a setting that is wrong has started")
	}
}

func TestClockThatCouldNotDoAllThatBecameDueIsAnError(t *testing.T) {
	for settled, wrong := range map[string]bool{"true": false, "false": true} {
		server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, _ *http.Request) {
			io.WriteString(reply, `{"now_ms": 1, "stands": false, "settled": `+settled+`}`)
		}))
		cluster := Cluster{control: strings.TrimPrefix(server.URL, "http://"), prefix: "/_admin"}
		if err := cluster.AdvanceClock(time.Second); (err != nil) != wrong {
			t.Fatal(settled, err)
		}
		server.Close()
	}
}

func TestProducedRecordsGoByTheirKeyElseRoundAndTheirPlacesAreTold(t *testing.T) {
	broker := started(t, Options{})
	if err := broker.CreateTopic("t", 3); err != nil {
		t.Fatal(err)
	}
	given := []Record{{Value: "a"}, {Value: []byte{0xff}}, {Value: map[string]any{"n": 1}}, {Value: []int{2}},
		{Key: "table 4", Value: "b"}, {Value: "c", Partition: Partition(2)}, {Value: "d"}}
	places, err := broker.Produce("t", given...)
	want := []Place{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {2, 1}, {2, 2}, {1, 1}}
	if err != nil || !slices.Equal(places, want) {
		t.Fatal(places, err)
	}
	if places, err = broker.Produce("t", Record{Value: "e"}); err != nil || !slices.Equal(places, []Place{{2, 3}}) {
		t.Fatal("another call does not go on", places, err)
	}
	found, err := broker.Consume("t", 8, 10*time.Second)
	values := ""
	for _, each := range found {
		values += fmt.Sprintf("%d %v, ", *each.Partition, each.Value)
	}
	if err != nil || values != `0 a, 0 [2], 1 map[base64:/w==], 1 d, 2 {"n":1}, 2 b, 2 c, 2 e, ` {
		t.Fatal(values, err)
	}
}

func TestRecordKeepsItsTimestamp(t *testing.T) {
	broker := started(t, Options{})
	if _, err := broker.Produce("t", Record{Value: "x", TimestampMs: 1_700_000_000_000}, Record{Value: "y"}); err != nil {
		t.Fatal(err)
	}
	found, err := broker.Consume("t", 2, 10*time.Second)
	if err != nil || found[0].TimestampMs != 1_700_000_000_000 || found[1].TimestampMs < time.Now().UnixMilli()-60_000 {
		t.Fatal(found, err)
	}
}

// inner is a test in a test: what it registers runs when finish is called.
type inner struct {
	testing.TB
	cleanups []func()
	errors   []any
}

func (t *inner) Helper()             {}
func (t *inner) Cleanup(call func()) { t.cleanups = append(t.cleanups, call) }
func (t *inner) Error(words ...any)  { t.errors = append(t.errors, words...) }

func (t *inner) finish() []any {
	for _, each := range t.cleanups {
		each()
	}
	return t.errors
}

var fault = map[string]any{"fault": "inject_error", "api": "OffsetCommit", "error": "NOT_COORDINATOR"}

func TestFaultThatNeverActedFailsItsTest(t *testing.T) {
	broker := started(t, Options{})
	for name, each := range map[string]struct {
		act    func(cluster *Cluster) error
		errors int
	}{
		"none":    {func(cluster *Cluster) error { return nil }, 0},
		"unmet":   {func(cluster *Cluster) error { return cluster.AddFault(fault) }, 1},
		"cleared": {func(cluster *Cluster) error { return errors.Join(cluster.AddFault(fault), cluster.ClearFaults()) }, 0},
		"reset":   {func(cluster *Cluster) error { return errors.Join(cluster.AddFault(fault), cluster.Reset()) }, 0},
		"removed": {func(cluster *Cluster) error {
			cluster.AddFault(fault)
			if err := cluster.Remove(); err == nil || !strings.Contains(err.Error(), "OffsetCommit") {
				return fmt.Errorf("the fault is not told: %w", err)
			}
			return nil
		}, 1},
	} {
		test := &inner{}
		cluster := broker.ClusterFor(test, ClusterOptions{})
		if err := each.act(cluster); err != nil {
			t.Fatal(name, err)
		}
		if told := test.finish(); len(told) != each.errors {
			t.Fatal(name, told)
		}
		if err := cluster.CreateTopic("t", 1); err == nil {
			t.Fatal(name, "the cluster is there after its test")
		}
	}
}

func TestFaultThatActedFailsNothing(t *testing.T) {
	broker := started(t, Options{})
	cluster := broker.ClusterFor(t, ClusterOptions{})
	if err := cluster.AddFault(map[string]any{"fault": "disconnect_on", "api": "ApiVersions", "when": "before"}); err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", cluster.BootstrapServers)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.Write([]byte("\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff")) // ApiVersions v0
	io.ReadAll(client)                                                               // until it is cut
	if err := cluster.Verify(); err != nil {
		t.Fatal(err)
	}
}

func TestEndTellsOfFaultsThatNeverActed(t *testing.T) {
	broker, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	left, err := broker.NewCluster(ClusterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(broker.AddFault(fault), left.AddFault(fault)); err != nil {
		t.Fatal(err)
	}
	if err := broker.Close(); err == nil || strings.Count(err.Error(), "never acted") != 2 {
		t.Fatal(err)
	}
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
}
