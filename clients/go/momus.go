// Package momus runs a momus broker for Go tests, and speaks its control plane.
//
//	broker, err := momus.Start(momus.Options{})      // a process of its own; or momus.Connect("127.0.0.1:9090")
//	cluster := broker.ClusterFor(t, momus.ClusterOptions{})
//	... a client on cluster.BootstrapServers ...
//	err = cluster.AdvanceClock(8 * 24 * time.Hour)
//	err = broker.Close()
//
// A fault that never acted is an error of Verify, Remove and Close, and fails the test of ClusterFor.
package momus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const mostRecords = 10_000 // of one answer

// Options say how a broker is started.
type Options struct {
	// Command begins the broker; "momus" if empty, or what MOMUS_COMMAND says. It may be "uvx --from PATH momus".
	Command []string
	// Config has Kafka's own broker settings.
	Config map[string]string
	// Brokers is the number of virtual brokers of the first cluster; 1 if 0.
	Brokers int
}

// Broker is a process, and the first of its clusters.
type Broker struct {
	Cluster
	process *exec.Cmd
	dataDir string
	lock    sync.Mutex
	made    []*Cluster
}

// Cluster is one cluster of a process. BootstrapServers is what clients take.
type Cluster struct {
	Name             string `json:"name"`
	BootstrapServers string `json:"bootstrap_servers"`
	control          string
	prefix           string
	token            string
	removed          bool
	unmet            error // what Verify said when it was removed
}

// TB is what ClusterFor uses of a *testing.T.
type TB interface {
	Helper()
	Cleanup(func())
	Error(...any)
	Fatal(...any)
}

// ClusterOptions say what a new cluster begins with. Zero values are the control plane's defaults.
type ClusterOptions struct {
	Name    string            `json:"name,omitempty"`
	Brokers int               `json:"brokers,omitempty"`
	Config  map[string]string `json:"config,omitempty"`
	Seed    *int64            `json:"seed,omitempty"`
}

// Record is one to produce, or one that was read: a value that is not UTF-8 is {"base64": ...}. A record without a
// timestamp gets the time of the cluster's clock. To produce, a value may also be bytes, or a map, slice or struct that
// becomes JSON, and Partition may be nil: the record goes where Java's producer sends its key; without a key, to each
// partition in turn, from 0 on.
type Record struct {
	Partition   *int  `json:"partition"`
	Offset      int64 `json:"offset,omitempty"`
	TimestampMs int64 `json:"timestamp_ms,omitempty"`
	Key         any   `json:"key"`
	Value       any   `json:"value"`
}

// Start runs a broker and waits until it serves. Its data lie in a temporary directory until Close.
func Start(options Options) (*Broker, error) {
	command := options.Command
	if len(command) == 0 {
		command = []string{"momus"}
		if told := os.Getenv("MOMUS_COMMAND"); told != "" {
			command = strings.Fields(told)
		}
	}
	dataDir, err := os.MkdirTemp("", "momus-")
	if err != nil {
		return nil, err
	}
	words := append(append([]string{}, command[1:]...), "serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0",
		"--data-dir", dataDir)
	if options.Brokers > 0 {
		words = append(words, "--brokers", fmt.Sprint(options.Brokers))
	}
	for key, value := range options.Config {
		words = append(words, "--set", key+"="+value)
	}
	process := exec.Command(command[0], words...)
	process.Stderr = os.Stderr
	broker := &Broker{process: process, dataDir: dataDir}
	output, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		os.RemoveAll(dataDir)
		return nil, fmt.Errorf("momus: %s: %w", strings.Join(command, " "), err)
	}
	lines := bufio.NewScanner(output)
	for _, want := range []string{"momus ready ", "momus control "} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			broker.Close()
			return nil, fmt.Errorf("momus: the broker did not start: %q", lines.Text())
		}
		if want == "momus control " {
			broker.control = strings.TrimPrefix(lines.Text(), want)
		} else {
			broker.BootstrapServers = strings.TrimPrefix(lines.Text(), want)
		}
	}
	go io.Copy(io.Discard, output)
	broker.Name, broker.prefix = "default", "/_admin"
	return broker, nil
}

// Connect uses a broker that runs already, by the address of its control endpoint (and MOMUS_CONTROL_TOKEN).
func Connect(control string) (*Broker, error) {
	broker := &Broker{Cluster: Cluster{control: control, prefix: "/_admin", token: os.Getenv("MOMUS_CONTROL_TOKEN")}}
	clusters := []Cluster{}
	if err := broker.ask("GET", "/_admin/clusters", nil, &clusters); err != nil {
		return nil, err
	}
	for _, each := range clusters {
		if each.Name == "default" {
			broker.Name, broker.BootstrapServers = each.Name, each.BootstrapServers
		}
	}
	return broker, nil
}

// Close removes the clusters that NewCluster made, ends a process that Start began, and removes its data. It is an error
// if a fault of one of its clusters never acted.
func (b *Broker) Close() error {
	b.lock.Lock()
	made := b.made
	b.made = nil
	b.lock.Unlock()
	wrong := []error{}
	for _, each := range made {
		if !each.removed {
			wrong = append(wrong, each.Remove())
		}
	}
	if b.process == nil || b.process.Process == nil {
		return errors.Join(wrong...)
	}
	if b.control != "" {
		wrong = append(wrong, b.Verify())
	}
	b.process.Process.Signal(syscall.SIGTERM)
	wrong = append(wrong, b.process.Wait())
	os.RemoveAll(b.dataDir)
	b.process = nil
	return errors.Join(wrong...)
}

// NewCluster makes another cluster in the process, in milliseconds: one for each test.
func (b *Broker) NewCluster(options ClusterOptions) (*Cluster, error) {
	made := &Cluster{control: b.control, token: b.token}
	if err := b.ask("POST", "/_admin/clusters", options, made); err != nil {
		return nil, err
	}
	made.prefix = "/_admin/clusters/" + url.PathEscape(made.Name)
	b.lock.Lock()
	b.made = append(b.made, made)
	b.lock.Unlock()
	return made, nil
}

// ClusterFor makes a cluster for one test, and removes it when the test ends, which fails if a fault never acted.
func (b *Broker) ClusterFor(t TB, options ClusterOptions) *Cluster {
	t.Helper()
	made, err := b.NewCluster(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := made.Remove(); err != nil {
			t.Error(err)
		}
	})
	return made
}

// Remove ends a cluster that NewCluster made; its clients are disconnected. It is an error if a fault never acted, which
// a second call says again.
func (c *Cluster) Remove() error {
	if c.removed {
		return c.unmet
	}
	c.unmet = c.Verify()
	err := c.ask("DELETE", c.prefix, nil, nil)
	c.removed = err == nil
	return errors.Join(c.unmet, err)
}

// Verify asks whether all faults that are set have acted. What a test meant to happen did not, where one has not.
func (c *Cluster) Verify() error {
	idle := []json.RawMessage{}
	if err := c.ask("GET", c.prefix+"/faults?unmet=true", nil, &idle); err != nil {
		return fmt.Errorf("momus: it is not known whether all faults have acted: %w", err)
	}
	wrong := make([]error, len(idle))
	for i, each := range idle {
		wrong[i] = fmt.Errorf("momus: a fault never acted; calls are the requests that matched it: %s", each)
	}
	return errors.Join(wrong...)
}

// Reset drops all topics, groups and records, and disconnects clients. Ports stay.
func (c *Cluster) Reset() error { return c.ask("POST", c.prefix+"/reset", nil, nil) }

// CreateTopic makes a topic.
func (c *Cluster) CreateTopic(name string, partitions int) error {
	return c.ask("POST", c.prefix+"/topics", map[string]any{"name": name, "partitions": partitions}, nil)
}

// Place says where a record is.
type Place struct {
	Partition int   `json:"partition"`
	Offset    int64 `json:"offset"`
}

// Partition names a partition in a Record.
func Partition(number int) *int { return &number }

// Produce appends records to a topic, which is made if it is not there. It says where each of them is.
func (c *Cluster) Produce(topic string, records ...Record) ([]Place, error) {
	rows := make([]map[string]any, len(records))
	for i, each := range records {
		rows[i] = map[string]any{"key": written(each.Key), "value": written(each.Value)}
		if each.Partition != nil {
			rows[i]["partition"] = *each.Partition
		}
		if each.TimestampMs != 0 {
			rows[i]["timestamp_ms"] = each.TimestampMs
		}
	}
	places := []Place{}
	body := map[string]any{"records": rows}
	err := c.ask("POST", c.prefix+"/topics/"+url.PathEscape(topic)+"/records", body, &places)
	return places, err
}

// written is a key or a value as the control plane takes it: Go's own JSON has bytes as a text.
func written(value any) any {
	if data, is := value.([]byte); is {
		return map[string][]byte{"base64": data}
	}
	return value
}

// Consume reads from the beginning and waits until there are so many records, at most for the time given.
// Where none are waited for, a topic that does not exist is an error.
func (c *Cluster) Consume(topic string, least int, wait time.Duration) ([]Record, error) {
	records := []Record{}
	offsets, source := map[string]int64{}, ""
	for end, more := time.Now().Add(wait), true; more; {
		answer := struct {
			Records []Record         `json:"records"`
			Reached bool             `json:"reached"`
			More    bool             `json:"more"`
			Offsets map[string]int64 `json:"offsets"`
			Source  string           `json:"source"`
		}{}
		body := map[string]any{
			"least":      max(0, min(least-len(records), mostRecords)),
			"timeout_ms": max(0, time.Until(end)).Milliseconds(),
			"offsets":    offsets,
			"source":     source,
		}
		if err := c.ask("POST", c.prefix+"/topics/"+url.PathEscape(topic)+"/consume", body, &answer); err != nil {
			return nil, err
		}
		records = append(records, answer.Records...)
		if !answer.Reached {
			return records, fmt.Errorf("momus: %s has %d records, not %d", topic, len(records), least)
		}
		more, offsets, source = answer.More, answer.Offsets, answer.Source
	}
	return records, nil
}

// AdvanceClock lets time pass for the cluster: sessions, transactions and retention expire as they would. It is an error
// if not all that became due was done in time; the clock has moved then.
func (c *Cluster) AdvanceClock(by time.Duration) error {
	answer := struct {
		Settled bool `json:"settled"`
	}{}
	err := c.ask("POST", c.prefix+"/clock", map[string]any{"advance_ms": by.Milliseconds()}, &answer)
	if err == nil && !answer.Settled {
		err = errors.New("momus: the clock has moved, but not all that became due was done in time")
	}
	return err
}

// AddFault lets something go wrong (docs/faults.md), as {"fault": "inject_error", "api": "OffsetCommit", "error": "..."}.
func (c *Cluster) AddFault(fault map[string]any) error {
	return c.ask("POST", c.prefix+"/faults", fault, nil)
}

// ClearFaults removes all faults, also those that never acted; what they keep goes on.
func (c *Cluster) ClearFaults() error { return c.ask("DELETE", c.prefix+"/faults", nil, nil) }

// StopBroker and StartBroker stop and start a virtual broker.
func (c *Cluster) StopBroker(id int) error {
	return c.ask("POST", fmt.Sprintf("%s/brokers/%d/stop", c.prefix, id), nil, nil)
}

// PauseBroker and ResumeBroker let a virtual broker read and answer nothing, with its connections open.
func (c *Cluster) PauseBroker(id int) error {
	return c.ask("POST", fmt.Sprintf("%s/brokers/%d/pause", c.prefix, id), nil, nil)
}

// ResumeBroker lets a paused broker go on.
func (c *Cluster) ResumeBroker(id int) error {
	return c.ask("POST", fmt.Sprintf("%s/brokers/%d/resume", c.prefix, id), nil, nil)
}

// StartBroker starts a virtual broker again, on the same port.
func (c *Cluster) StartBroker(id int) error {
	return c.ask("POST", fmt.Sprintf("%s/brokers/%d/start", c.prefix, id), nil, nil)
}

func (c *Cluster) ask(method, path string, body, answer any) error {
	var data io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		data = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, "http://"+c.control+path, data)
	if err != nil {
		return err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode >= 300 {
		err = fmt.Errorf("momus: %s %s: %s: %s", method, path, reply.Status, said)
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(said, answer)
	}
	return err
}
