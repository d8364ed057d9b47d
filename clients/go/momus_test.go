package momus

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
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
	t.Cleanup(func() { broker.Close() })
	return broker
}

func TestClustersOfOneProcessAreApart(t *testing.T) {
	broker := started(t, Options{Config: map[string]string{"num.partitions": "3"}})
	for _, name := range []string{"one", "two"} {
		cluster, err := broker.NewCluster(ClusterOptions{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := cluster.Produce("orders", Record{Key: "table 4", Value: name}); err != nil {
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
		records[i].Value = "x"
	}
	if err := broker.Produce("t", append(records, Record{Partition: 1, Value: "last"})...); err != nil {
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
	if err := broker.Produce("%74", Record{Value: "x"}); err == nil {
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
		broker.AddFault(map[string]any{"fault": "inject_error", "api": "OffsetCommit", "error": "NOT_COORDINATOR"}),
		broker.StopBroker(2),
		broker.StartBroker(2),
	} {
		if err != nil {
			t.Fatal(step, err)
		}
	}
	before := time.Now().Add(7 * 24 * time.Hour).UnixMilli()
	if err := broker.Produce("t", Record{Value: "later"}); err != nil {
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

func TestRecordKeepsItsTimestamp(t *testing.T) {
	broker := started(t, Options{})
	if err := broker.Produce("t", Record{Value: "x", TimestampMs: 1_700_000_000_000}, Record{Value: "y"}); err != nil {
		t.Fatal(err)
	}
	found, err := broker.Consume("t", 2, 10*time.Second)
	if err != nil || found[0].TimestampMs != 1_700_000_000_000 || found[1].TimestampMs < time.Now().UnixMilli()-60_000 {
		t.Fatal(found, err)
	}
}
