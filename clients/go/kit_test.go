package momus

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// inner is a test in a test: what it registers runs when finish is called, and a Fatalf ends the call of run.
type inner struct {
	failed   bool
	said     []string
	logged   []string
	cleanups []func()
}

type fatal struct{}

func (t *inner) Helper()             {}
func (t *inner) Name() string        { return "TestInner/with a blank" }
func (t *inner) Failed() bool        { return t.failed }
func (t *inner) Cleanup(call func()) { t.cleanups = append(t.cleanups, call) }
func (t *inner) Logf(format string, words ...any) {
	t.logged = append(t.logged, fmt.Sprintf(format, words...))
}
func (t *inner) Errorf(format string, words ...any) {
	t.failed, t.said = true, append(t.said, fmt.Sprintf(format, words...))
}
func (t *inner) Fatalf(format string, words ...any) {
	t.Errorf(format, words...)
	panic(fatal{})
}

// run is what a test would do, and then its end.
func run(do func(t *inner)) *inner {
	t := &inner{}
	func() {
		defer func() {
			if said := recover(); said != nil {
				if _, is := said.(fatal); !is {
					panic(said)
				}
			}
		}()
		do(t)
	}()
	for _, each := range slices.Backward(t.cleanups) {
		each()
	}
	return t
}

// greet sends an ApiVersions v0 and waits for the answer, or the end of the connection.
func greet(t TB, cluster *Cluster) {
	client, err := net.Dial("tcp", cluster.Addresses[0])
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer client.Close()
	client.Write([]byte("\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"))
	io.ReadFull(client, make([]byte, 4))
}

func TestEachTestHasAClusterOfItsOwnInOneProcess(t *testing.T) {
	names, ports := map[string]bool{}, map[string]bool{}
	for range 2 {
		told := run(func(t *inner) {
			cluster := New(t, ClusterOptions{Topics: map[string]int{"orders": 3}})
			names[cluster.Name], ports[cluster.process.Control] = true, true
			cluster.Produce("orders", "one coffee")
			cluster.Consume("orders", 1)
			if cluster.Try(func(c *Cluster) { c.CreateTopic("orders", 1) }) == nil {
				t.Errorf("the topic is made twice")
			}
		})
		if told.failed {
			t.Fatal(told.said)
		}
	}
	if len(names) != 2 || len(ports) != 1 {
		t.Fatal(names, ports)
	}
	process, _ := ofRun()
	left, err := process.Clusters(context.Background())
	if err != nil || slices.ContainsFunc(left, func(name string) bool { return names[name] }) {
		t.Fatal("clusters are there after their tests", left, err)
	}
}

func TestAddressesAreOneForEachBroker(t *testing.T) {
	cluster := New(t, ClusterOptions{Brokers: 3})
	if len(cluster.Addresses) != 3 || strings.Join(cluster.Addresses, ",") != cluster.BootstrapServers {
		t.Fatal(cluster.Addresses, cluster.BootstrapServers)
	}
	for _, address := range cluster.Addresses {
		client, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
	if fork := cluster.Fork(t); len(fork.Addresses) != 3 || fork.Addresses[0] == cluster.Addresses[0] {
		t.Fatal(fork.Addresses)
	}
}

func TestFaultThatNeverActedFailsItsTest(t *testing.T) {
	never := func(c *Cluster) *Fault {
		return c.Faults.InjectError("OffsetCommit", "NOT_COORDINATOR", OfGroup("billing"))
	}
	for name, each := range map[string]struct {
		do     func(c *Cluster)
		errors int
	}{
		"none":    {func(c *Cluster) {}, 0},
		"unmet":   {func(c *Cluster) { never(c) }, 1},
		"cleared": {func(c *Cluster) { never(c); c.Faults.Clear() }, 0},
		"removed": {func(c *Cluster) { never(c).Remove() }, 0},
		"reset":   {func(c *Cluster) { never(c); c.Reset() }, 0},
		"ended":   {func(c *Cluster) { never(c); c.Remove(); c.Remove() }, 1},
		"forked":  {func(c *Cluster) { never(c.Fork(c.tb)) }, 1},
		"met":     {func(c *Cluster) { c.Faults.DisconnectOn("ApiVersions", Before); greet(c.tb, c) }, 0},
	} {
		told := run(func(t *inner) { each.do(New(t, ClusterOptions{})) })
		if len(told.said) != each.errors || (each.errors > 0 && !strings.Contains(told.said[0], "the fault fault-1 never acted (no request matched it)")) {
			t.Error(name, told.said)
		}
	}
}

func TestExpectationThatIsNotMetFailsItsTestAndTheReportHasTheLastRequests(t *testing.T) {
	told := run(func(t *inner) {
		cluster := New(t, ClusterOptions{})
		cluster.Journal.Expect(Exactly(2), API("ApiVersions"))
		greet(t, cluster)
		cluster.Reset()
		if left := cluster.Unmet(); len(left) != 1 || !strings.Contains(left[0], "came 1 time") {
			t.Errorf("before the end: %v", left)
		}
	})
	if len(told.said) != 1 || !strings.Contains(told.said[0], "api=ApiVersions came 1 time, expected exactly 2") {
		t.Fatal(told.said)
	}
	told = run(func(t *inner) {
		cluster := New(t, ClusterOptions{})
		greet(t, cluster)
		cluster.Journal.Verify(Exactly(1), API("ApiVersions"))
		cluster.Journal.Verify(AtMost(0), API("ApiVersions"), ClientID("nobody"))
		cluster.Journal.Verify(Exactly(3), API("ApiVersions"))
	})
	if len(told.said) != 1 || len(told.logged) != 1 || !strings.Contains(told.logged[0], "ApiVersions v0") {
		t.Fatal(told.said, told.logged)
	}
}

func TestRunOfAFailedTestIsKept(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("MOMUS_KEEP_FAILED", folder)
	run(func(t *inner) { New(t, ClusterOptions{}) })
	run(func(t *inner) { greet(t, New(t, ClusterOptions{})); t.Errorf("failed") })
	kept, _ := filepath.Glob(filepath.Join(folder, "*.momus"))
	if len(kept) != 1 || !strings.HasPrefix(filepath.Base(kept[0]), "TestInner_with_a_blank-") {
		t.Fatal(kept)
	}
	command, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(command[0], append(command[1:], "replay", kept[0])...).CombinedOutput()
	if err != nil {
		t.Fatal(err, string(said))
	}
}

func TestRefusedCallEndsTheTestInWords(t *testing.T) {
	told := run(func(t *inner) {
		New(t, ClusterOptions{}).Faults.InjectError("OffsetCommit", "SINGING")
		t.Logf("goes on")
	})
	if len(told.said) != 1 || !strings.Contains(told.said[0], "SINGING") || len(told.logged) > 1 {
		t.Fatal(told.said, told.logged)
	}
}

func TestRecordsGoThereAndBack(t *testing.T) {
	cluster := New(t, ClusterOptions{Topics: map[string]int{"t": 3}})
	at := time.UnixMilli(1_700_000_000_000)
	places := cluster.Produce("t", "a", []byte{0xff}, map[string]any{"n": 1}, []int{2},
		Message{Key: "table 4", Value: "b", Headers: []Header{{"h", []byte{0xfe}}, {"none", nil}}, Time: at}, Message{Value: nil, Partition: Partition(2)})
	if !slices.Equal(places, []Place{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {2, 1}, {2, 2}}) {
		t.Fatal(places)
	}
	found := cluster.Consume("t", 6)
	said := ""
	for _, each := range found {
		said += fmt.Sprintf("%d %q, ", each.Partition, each.Value)
	}
	if said != `0 "a", 0 "[2]", 1 "\xff", 2 "{\"n\":1}", 2 "b", 2 "", ` || found[5].Value != nil || found[5].Key != nil {
		t.Fatal(said, found)
	}
	keyed := cluster.Consume("t", 1, Reading{Key: "table 4", Partition: Partition(2)})
	if len(keyed) != 1 || !keyed[0].Time.Equal(at) || string(keyed[0].Headers[0].Value) != "\xfe" || keyed[0].Headers[1].Value != nil {
		t.Fatal(keyed)
	}
	told := run(func(t *inner) {
		other := New(t, ClusterOptions{})
		other.Produce("t", "a")
		other.Consume("t", 2, Reading{Wait: 50 * time.Millisecond})
	})
	if len(told.said) != 1 || !strings.Contains(told.said[0], "t has 1 records after 50ms, not 2") {
		t.Fatal(told.said)
	}
}

func TestAllRecordsAreConsumedHoweverManyAnswersTheyTake(t *testing.T) {
	cluster := New(t, ClusterOptions{})
	values := make([]any, mostRecords+5)
	for i := range values {
		values[i] = "x"
	}
	cluster.Produce("t", values...)
	for _, least := range []int{0, mostRecords + 5} {
		if found := cluster.Consume("t", least); len(found) != mostRecords+5 {
			t.Fatal(len(found))
		}
	}
}

func TestClockMovesStandsAndSaysWhenItCouldNotDoAll(t *testing.T) {
	cluster := New(t, ClusterOptions{})
	cluster.Clock.Freeze()
	at := cluster.Clock.Now()
	cluster.Clock.Advance(8 * 24 * time.Hour)
	if passed := cluster.Clock.Now().Sub(at); passed != 8*24*time.Hour || !cluster.Clock.Stands() {
		t.Fatal(passed)
	}
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, _ *http.Request) {
		io.WriteString(reply, `{"now_ms": 1, "stands": false, "settled": false}`)
	}))
	defer server.Close()
	process := &Process{Control: strings.TrimPrefix(server.URL, "http://")}
	told := run(func(t *inner) { process.Default(t).Clock.Advance(time.Second) })
	if len(told.said) != 1 || !strings.Contains(told.said[0], "not all that became due was done") {
		t.Fatal(told.said)
	}
}

func TestForkGoesOnAloneAndDiffTellsWhatIsDifferent(t *testing.T) {
	shared := Shared(ClusterOptions{})
	shared.Produce("orders", "a")
	full := shared.Snapshot("full")
	fork := full.Fork(t)
	if difference := fork.Diff(full); difference.Different {
		t.Fatal(difference)
	}
	fork.Produce("orders", "b")
	difference := fork.Diff(full)
	if !difference.Different || len(difference.Records) != 1 || !strings.Contains(difference.String(), `"topic":"orders"`) {
		t.Fatal(difference)
	}
	if found := shared.Consume("orders", 0); len(found) != 1 {
		t.Fatal(found)
	}
	fork.Snapshot("here").Restore()
}

func TestCallsEndWithTheirContext(t *testing.T) {
	cluster := New(t, ClusterOptions{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := cluster.WithContext(ctx).Try(func(c *Cluster) { c.Consume("never", 1, Reading{Wait: time.Hour}) })
	if err == nil || !strings.Contains(err.Error(), "context deadline exceeded") {
		t.Fatal(err)
	}
}

func TestKitAndMomusOfOtherVersionsSaySo(t *testing.T) {
	for answer, words := range map[string]string{
		`{"version": "9.1.0", "api": 2}`:                      "of 9.1.0 and speaks version 2",
		`{"version": "0.1.1", "api": 1, "more": "tolerated"}`: "",
		"": "is older than this kit",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, _ *http.Request) {
			if answer == "" {
				reply.WriteHeader(404)
			}
			io.WriteString(reply, answer)
		}))
		_, err := Connect(context.Background(), strings.TrimPrefix(server.URL, "http://"))
		if (words == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), words)) {
			t.Error(answer, err)
		}
		server.Close()
	}
}

func TestStartThatFailsSaysWhy(t *testing.T) {
	for _, each := range []struct {
		options Options
		words   string
	}{
		{Options{Command: []string{"no-such-momus"}}, "no-such-momus"},
		{Options{Config: map[string]string{"num.partitions": "none"}, Log: io.Discard}, "num.partitions"},
	} {
		if _, err := Start(context.Background(), each.options); err == nil || !strings.Contains(err.Error(), each.words) {
			t.Error(err)
		}
	}
}

const child = "MOMUS_TEST_CHILD"

// TestChild is the run of the test below that is killed.
func TestChild(t *testing.T) {
	if os.Getenv(child) == "" {
		t.Skip("a part of another test")
	}
	process, err := Start(context.Background(), Options{})
	fmt.Println("control", process.Control, err)
	select {}
}

func TestProcessEndsWithTheRunEvenByKill9(t *testing.T) {
	if os.Getenv("MOMUS_ADDRESS") != "" {
		t.Skip("the process is another's")
	}
	command := exec.Command(os.Args[0], "-test.run", "^TestChild$")
	command.Env = append(os.Environ(), child+"=yes")
	output, err := command.StdoutPipe()
	if err != nil || command.Start() != nil {
		t.Fatal(err)
	}
	lines, address := bufio.NewScanner(output), ""
	for address == "" && lines.Scan() {
		fmt.Sscanf(lines.Text(), "control %s", &address)
	}
	if connection, err := net.Dial("tcp", address); err != nil {
		t.Fatal(err)
	} else {
		connection.Close()
	}
	command.Process.Kill()
	command.Wait()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		connection.Close()
		if time.Now().After(end) {
			t.Fatal("the process outlives the run that has started it")
		}
	}
}

func TestClusterIsFilledFromAFileAndWhatItNames(t *testing.T) {
	folder := t.TempDir()
	document := `{"topics": [{"name": "orders", "records_from": "orders.csv", "records_key": "id"}]}`
	for name, text := range map[string]string{"orders.json": document, "orders.csv": "id,item\n7,coffee\n", ".hidden.json": "{"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{folder, filepath.Join(folder, "orders.json")} {
		cluster := New(t, ClusterOptions{Load: path})
		if found := cluster.Consume("orders", 1)[0]; string(found.Key) != "7" || string(found.Value) != `{"id":"7","item":"coffee"}` {
			t.Fatal(found)
		}
	}
	told := run(func(t *inner) { New(t, ClusterOptions{Load: filepath.Join(folder, "nothing.json")}) })
	if len(told.said) != 1 || !strings.Contains(told.said[0], "nothing.json") {
		t.Fatal(told.said)
	}
}
