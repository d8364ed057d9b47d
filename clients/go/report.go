package momus

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const toldRequests = 20

var notInNames = regexp.MustCompile(`[^\w.-]+`)

// Record begins again with the data that is there, as a restore does, and records whatever happens from then on.
func (c *Cluster) Record() { c.tb.Helper(); c.ask("POST", "/recording", map[string]any{}, nil) }

// Recording is what was recorded so far: a file for `momus replay` and `momus open`.
func (c *Cluster) Recording() []byte {
	c.tb.Helper()
	answer := struct {
		Zip []byte `json:"zip"`
	}{}
	c.ask("GET", "/recording", nil, &answer)
	return answer.Zip
}

// EndRecording stops, and drops what was recorded.
func (c *Cluster) EndRecording() { c.tb.Helper(); c.ask("DELETE", "/recording", nil, nil) }

// keepIfFailed records the test, if MOMUS_KEEP_FAILED names a folder for the runs of failed tests.
func (c *Cluster) keepIfFailed() {
	c.tb.Helper()
	if os.Getenv("MOMUS_KEEP_FAILED") != "" {
		c.Record()
	}
}

// tell puts the last requests into the report of a failed test, and keeps its run.
func (c *Cluster) tell(tb TB) {
	tb.Helper()
	lines := struct {
		Lines []string `json:"lines"`
	}{}
	if err := c.process.ask(c.context, "GET", c.path+"/journal/last", nil, &lines); err == nil && len(lines.Lines) > 0 {
		tb.Logf("the last requests of momus cluster %s:\n%s", c.Name, strings.Join(lines.Lines, "\n"))
	}
	folder := os.Getenv("MOMUS_KEEP_FAILED")
	if folder == "" {
		return
	}
	answer := struct {
		Zip []byte `json:"zip"`
	}{}
	if err := c.process.ask(c.context, "GET", c.path+"/recording", nil, &answer); err != nil {
		tb.Logf("the run of cluster %s is not kept: %v", c.Name, err)
		return
	}
	name := filepath.Join(folder, notInNames.ReplaceAllString(tb.Name(), "_")+"-"+c.Name+".momus")
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		err = os.WriteFile(name, answer.Zip, 0o600)
	}
	if err != nil {
		tb.Logf("the run of cluster %s is not kept: %v", c.Name, err)
		return
	}
	tb.Logf("the run of cluster %s is kept: momus replay %s", c.Name, name)
}
