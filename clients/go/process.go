package momus

import (
	"bufio"
	"bytes"
	"context"
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

// Version is that of this kit, and of the momus that it is made for.
const Version = "0.1.0"

// api is the number of the control plane's words that this kit knows.
const api = 1

// Options say how a process is started.
type Options struct {
	Command []string          // its first words; nil: as Find finds it
	Args    []string          // further options of `momus serve`
	Config  map[string]string // Kafka's own broker settings, of all its clusters
	Brokers int               // virtual brokers of the cluster default; 1 if 0
	Log     io.Writer         // what it logs; os.Stderr if nil
}

// Process is a momus with any number of clusters.
type Process struct {
	Control string // HOST:PORT of its control endpoint
	Version string // of the momus that serves

	client http.Client
	token  string
	lock   sync.Mutex
	child  *exec.Cmd
	stdin  io.Closer
}

var ofRun = sync.OnceValues(func() (*Process, error) {
	if address := os.Getenv("MOMUS_ADDRESS"); address != "" {
		return Connect(context.Background(), address)
	}
	return Start(context.Background(), Options{})
})

// Start runs a momus and waits until it serves. It ends with Close, or when this program does, however that ends. Its
// data are in a folder that goes with it.
func Start(ctx context.Context, options Options) (*Process, error) {
	command := options.Command
	if len(command) == 0 {
		found, err := Find()
		if err != nil {
			return nil, err
		}
		command = found
	}
	words := append(append(append([]string{}, command[1:]...), "kit"), options.Args...)
	if options.Brokers > 0 {
		words = append(words, "--brokers", fmt.Sprint(options.Brokers))
	}
	for key, value := range options.Config {
		words = append(words, "--set", key+"="+value)
	}
	process := &Process{child: exec.Command(command[0], words...)}
	said := &bytes.Buffer{}
	var log io.Writer = os.Stderr
	if options.Log != nil {
		log = options.Log
	}
	process.child.Stderr = io.MultiWriter(log, &firstBytes{to: said})
	output, err := process.child.StdoutPipe()
	if err == nil {
		process.stdin, err = process.child.StdinPipe() // closed by the system when this program ends
	}
	if err == nil {
		err = process.child.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("momus: %s: %w", strings.Join(command, " "), err)
	}
	lines := bufio.NewScanner(output)
	for _, want := range []string{"momus ready ", "momus control "} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			process.stdin.Close()
			process.child.Wait()
			if strings.Contains(said.String(), "No such command 'kit'") {
				return nil, fmt.Errorf("momus: %s is older than this kit, which is of %s: install that version", command[0], Version)
			}
			return nil, fmt.Errorf("momus: it did not start: %s%s", lines.Text(), said)
		}
		process.Control = strings.TrimPrefix(lines.Text(), want)
	}
	go io.Copy(io.Discard, output)
	if err := process.agree(ctx); err != nil {
		return nil, errors.Join(err, process.Close())
	}
	return process, nil
}

// Connect uses a momus that runs already, by the address of its control endpoint, and with MOMUS_CONTROL_TOKEN.
func Connect(ctx context.Context, control string) (*Process, error) {
	process := &Process{Control: control, token: os.Getenv("MOMUS_CONTROL_TOKEN")}
	return process, process.agree(ctx)
}

// agree is an error where the kit and the momus that serves have other words.
func (p *Process) agree(ctx context.Context) error {
	answer := struct {
		Version string `json:"version"`
		API     int    `json:"api"`
	}{}
	err := p.ask(ctx, "GET", "/version", nil, &answer)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) && refusal.Status == 404 {
		return fmt.Errorf("momus: what serves at %s is older than this kit, which is of %s: install that version", p.Control, Version)
	}
	if err == nil && answer.API != api {
		err = fmt.Errorf("momus: this kit is of %s and speaks version %d of the control plane, what serves at %s is of %s and speaks version %d: "+
			"install the kit and the momus of one version", Version, api, p.Control, answer.Version, answer.API)
	}
	p.Version = answer.Version
	return err
}

// Close ends a process that Start began. One that is only connected goes on.
func (p *Process) Close() error {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.child == nil {
		return nil
	}
	p.stdin.Close()
	p.child.Process.Signal(syscall.SIGTERM)
	err := p.child.Wait()
	p.child = nil
	return err
}

// Refusal is a call that the control plane has refused.
type Refusal struct {
	Call   string // method and path
	Status int    // of HTTP
	Why    string
}

func (r *Refusal) Error() string { return fmt.Sprintf("momus: %s: %s", r.Call, r.Why) }

// ask makes a call. Errors: *Refusal, and those of the connection.
func (p *Process) ask(ctx context.Context, method, path string, body, answer any) error {
	var data io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("momus: %s %s: %w", method, path, err)
		}
		data = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+p.Control+path, data)
	if err != nil {
		return err
	}
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	setFields(request)
	reply, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("momus: %s %s: %w", method, path, err)
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	if err != nil {
		return fmt.Errorf("momus: %s %s: %w", method, path, err)
	}
	if reply.StatusCode != 200 {
		told := struct {
			Error string `json:"error"`
		}{}
		if json.Unmarshal(said, &told) != nil {
			told.Error = string(said)
		}
		return &Refusal{method + " " + path, reply.StatusCode, told.Error}
	}
	if text, is := answer.(*string); is {
		*text = string(said)
		return nil
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}

// Clusters are the names of the clusters that are there.
func (p *Process) Clusters(ctx context.Context) ([]string, error) {
	found := []described{}
	err := p.ask(ctx, "GET", "/_admin/clusters", nil, &found)
	names := make([]string, len(found))
	for i, each := range found {
		names[i] = each.Name
	}
	return names, err
}

// Routes are all paths of the control plane, each with its methods and what they are for.
func (p *Process) Routes(ctx context.Context) (map[string]map[string]string, error) {
	found := map[string]map[string]string{}
	return found, p.ask(ctx, "GET", "/", nil, &found)
}

// OpenAPI is the description of the control plane.
func (p *Process) OpenAPI(ctx context.Context) (map[string]any, error) {
	found := map[string]any{}
	return found, p.ask(ctx, "GET", "/openapi.json", nil, &found)
}

// IsHealthy asks whether it runs.
func (p *Process) IsHealthy(ctx context.Context) bool {
	return p.ask(ctx, "GET", "/healthz", nil, nil) == nil
}

// IsReady asks whether all groups are loaded.
func (p *Process) IsReady(ctx context.Context) bool {
	return p.ask(ctx, "GET", "/readyz", nil, nil) == nil
}

// Metrics are those of the cluster default, as Prometheus reads them.
func (p *Process) Metrics(ctx context.Context) (string, error) {
	found := ""
	return found, p.ask(ctx, "GET", "/metrics", nil, &found)
}

// HangUp cuts off all clients of all clusters for good, so that what they have sent can be counted before the end.
func (p *Process) HangUp(ctx context.Context) error {
	return p.ask(ctx, "POST", "/_admin/hang-up", nil, nil)
}

// firstBytes keeps what a process says until it serves.
type firstBytes struct {
	lock sync.Mutex
	to   *bytes.Buffer
}

func (f *firstBytes) Write(data []byte) (int, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.to.Len() < 1<<16 {
		f.to.Write(data)
	}
	return len(data), nil
}

func segment(name string) string { return "/" + url.PathEscape(name) }

func milliseconds(of time.Duration) int64 { return max(0, of).Milliseconds() }
