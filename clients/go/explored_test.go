package momus

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestCallsSayForWhichTestAClusterIsAndWhatCameOfIt(t *testing.T) {
	said := []string{}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, call *http.Request) {
		if field := call.Header.Get("Momus-Test") + call.Header.Get("Momus-Test-Failed"); field != "" {
			said = append(said, call.Method+" "+call.URL.Path+" "+field)
		}
		fmt.Fprintf(answer, `{"name": "c", "bootstrap_servers": "127.0.0.1:1", "api": %d, "unmet": [], "lines": []}`, api)
	}))
	defer server.Close()
	process, err := Connect(context.Background(), strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, failed := range []bool{false, true} {
		run(func(test *inner) {
			test.failed = failed
			process.New(test, ClusterOptions{}).Fork(test)
		})
	}
	process.New(panics{}, ClusterOptions{})
	expected := []string{}
	for _, failed := range []string{"false", "true"} {
		expected = append(expected,
			"POST /_admin/clusters TestInner%2Fwith%20a%20blank", "POST /_admin/clusters/c/fork TestInner%2Fwith%20a%20blank",
			"DELETE /_admin/clusters/c "+failed, "DELETE /_admin/clusters/c "+failed)
	}
	if !slices.Equal(said, expected) {
		t.Fatal(strings.Join(said, "\n"))
	}
}
