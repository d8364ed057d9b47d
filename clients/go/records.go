package momus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const mostRecords = 10_000 // of one answer

// TopicOptions are those of new topics.
type TopicOptions struct {
	Replicas int               // those that the setting says if 0
	Config   map[string]string // Kafka's own topic settings
}

func (o TopicOptions) words(body map[string]any) map[string]any {
	if o.Replicas != 0 {
		body["replicas"] = o.Replicas
	}
	if o.Config != nil {
		body["config"] = o.Config
	}
	return body
}

// CreateTopic makes a topic.
func (c *Cluster) CreateTopic(name string, partitions int, options ...TopicOptions) {
	c.tb.Helper()
	body := map[string]any{"name": name, "partitions": partitions}
	for _, each := range options {
		body = each.words(body)
	}
	c.ask("POST", "/topics", body, nil)
}

// CreateTopics makes topics, name -> partitions (-1: as the setting says): all of them or none.
func (c *Cluster) CreateTopics(topics map[string]int, options TopicOptions) {
	c.tb.Helper()
	c.ask("POST", "/create-topics", options.words(map[string]any{"topics": topics}), nil)
}

// Load fills the cluster with what a document says (docs/load.md), or a file or a folder of files, named by a text: YAML,
// JSON or TOML, with what they name beside them. It returns what was loaded, in numbers. ifPresent is fail, or skip: what
// is there already stays as it is.
func (c *Cluster) Load(load any, ifPresent string) map[string]int {
	c.tb.Helper()
	answer := struct {
		Loaded map[string]int `json:"loaded"`
		Needs  []string       `json:"needs"`
	}{}
	path, isPath := load.(string)
	if !isPath {
		c.ask("POST", "/load", map[string]any{"document": load, "if_present": ifPresent}, &answer)
		return answer.Loaded
	}
	needs, err := documents(path)
	for files := map[string]string{}; err == nil; needs = answer.Needs {
		for _, name := range needs {
			text, failed := os.ReadFile(name)
			if failed != nil {
				c.tb.Fatalf("momus: %v", failed)
			}
			files[name] = string(text)
		}
		c.ask("POST", "/load", map[string]any{"files": files, "if_present": ifPresent}, &answer)
		if len(answer.Needs) == 0 {
			return answer.Loaded
		}
	}
	c.tb.Fatalf("momus: %v", err)
	return nil
}

// documents are the file of a path, or those in the folder, by name; hidden ones are left out.
func documents(path string) ([]string, error) {
	about, err := os.Stat(path)
	if err != nil || !about.IsDir() {
		return []string{filepath.ToSlash(path)}, err
	}
	entries, err := os.ReadDir(path)
	found := []string{}
	for _, each := range entries {
		ending := filepath.Ext(each.Name())
		if !each.IsDir() && each.Name()[0] != '.' && strings.Contains(" .json .toml .yaml .yml ", " "+ending+" ") {
			found = append(found, filepath.ToSlash(filepath.Join(path, each.Name())))
		}
	}
	return found, err
}

// Message is a record to produce. A key is a text, bytes or nil; a value also a map, a slice or a struct, which becomes
// JSON. Without a partition it goes where Java's producer sends its key; without a key to each partition in turn.
type Message struct {
	Key       any
	Value     any
	Partition *int
	Headers   []Header
	Time      time.Time // that of the cluster's clock if zero
}

// Header is one of a record.
type Header struct {
	Name  string
	Value []byte
}

// Record is one that was read.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
	Time      time.Time
	Key       []byte // nil: none
	Value     []byte // nil: a tombstone
	Headers   []Header
}

// Place says where a record is.
type Place struct {
	Partition int   `json:"partition"`
	Offset    int64 `json:"offset"`
}

// Produce appends a record for each value: a text, bytes, nil, a Message, or what becomes JSON. The topic is made if it is
// not there. It returns where each of them is.
func (c *Cluster) Produce(topic string, values ...any) []Place {
	c.tb.Helper()
	rows := make([]map[string]any, len(values))
	for i, value := range values {
		message, is := value.(Message)
		if !is {
			message = Message{Value: value}
		}
		rows[i] = c.row(message)
	}
	places := []Place{}
	c.ask("POST", "/topics"+segment(topic)+"/records", map[string]any{"records": rows}, &places)
	return places
}

func (c *Cluster) row(of Message) map[string]any {
	row := map[string]any{"key": encoded(of.Key), "value": encoded(of.Value)}
	switch of.Value.(type) {
	case nil, string, []byte:
	default: // as a text, so that no key of it is mistaken for a word of the control plane
		text, err := json.Marshal(of.Value)
		if err != nil {
			c.tb.Fatalf("momus: a value that JSON has no form for: %v", err)
		}
		row["value"] = string(text)
	}
	if of.Partition != nil {
		row["partition"] = *of.Partition
	}
	if !of.Time.IsZero() {
		row["timestamp_ms"] = of.Time.UnixMilli()
	}
	if of.Headers != nil {
		pairs := make([][2]any, len(of.Headers))
		for i, each := range of.Headers {
			pairs[i] = [2]any{each.Name, nil}
			if each.Value != nil {
				pairs[i][1] = encoded(each.Value)
			}
		}
		row["headers"] = pairs
	}
	return row
}

// encoded is a key or a value as the control plane takes it: Go's own JSON has bytes as a text.
func encoded(value any) any {
	if data, is := value.([]byte); is {
		return map[string][]byte{"base64": data}
	}
	return value
}

// Reading says what Consume reads; its zero value is all of the topic, at once.
type Reading struct {
	Partition *int
	Offset    int64         // of that partition
	Key       any           // only records with this key: a text or bytes
	Committed bool          // leave out what open and aborted transactions have written
	Wait      time.Duration // for so many records; 10 s if 0
}

// Consume reads the records of a topic, and waits until there are at least so many. If none are waited for, the topic must
// be there.
func (c *Cluster) Consume(topic string, least int, reading ...Reading) []Record {
	c.tb.Helper()
	what := Reading{}
	for _, each := range reading {
		what = each
	}
	if what.Wait == 0 {
		what.Wait = 10 * time.Second
	}
	body := map[string]any{"offset": what.Offset}
	if what.Committed {
		body["isolation"] = "committed"
	}
	if what.Key != nil {
		body["key"] = encoded(what.Key)
	}
	if what.Partition != nil {
		body["partition"] = *what.Partition
	}
	records := []Record{}
	for end, more := time.Now().Add(what.Wait), true; more; {
		answer := consumed{}
		body["least"] = max(0, min(least-len(records), mostRecords))
		body["timeout_ms"] = milliseconds(min(time.Until(end), longest))
		c.ask("POST", "/topics"+segment(topic)+"/consume?check=false", body, &answer)
		for _, each := range answer.Records {
			records = append(records, each.record(topic))
		}
		more, body["offsets"], body["source"] = answer.More, answer.Offsets, answer.Source
		if !answer.Met {
			if more = time.Now().Before(end); !more {
				c.tb.Fatalf("momus: %s has %d records after %s, not %d", topic, len(records), what.Wait, least)
			}
		}
	}
	return records
}

type consumed struct {
	Records []row            `json:"records"`
	Met     bool             `json:"met"`
	More    bool             `json:"more"`
	Offsets map[string]int64 `json:"offsets"`
	Source  string           `json:"source"`
}

type row struct {
	Partition   int                  `json:"partition"`
	Offset      int64                `json:"offset"`
	TimestampMs int64                `json:"timestamp_ms"`
	Key         json.RawMessage      `json:"key"`
	Value       json.RawMessage      `json:"value"`
	Headers     [][2]json.RawMessage `json:"headers"`
}

func (r row) record(topic string) Record {
	made := Record{Topic: topic, Partition: r.Partition, Offset: r.Offset, Time: time.UnixMilli(r.TimestampMs), Key: bytesOf(r.Key), Value: bytesOf(r.Value)}
	for _, each := range r.Headers {
		made.Headers = append(made.Headers, Header{string(bytesOf(each[0])), bytesOf(each[1])})
	}
	return made
}

func (r Record) String() string {
	return fmt.Sprintf("%s-%d@%d %s: %s", r.Topic, r.Partition, r.Offset, r.Key, r.Value)
}
