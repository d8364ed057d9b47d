package momus

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Fields by which `momus explore` knows whose cluster a call makes, and what came of the test that removes it.
const (
	testField   = "Momus-Test"
	failedField = "Momus-Test-Failed"
)

type fieldsKey struct{}

// forTest lets calls name their test. Shared clusters are of none.
func forTest(ctx context.Context, tb TB) context.Context {
	if _, is := tb.(panics); is {
		return ctx
	}
	return context.WithValue(ctx, fieldsKey{}, [2]string{testField, url.PathEscape(tb.Name())})
}

// withOutcome lets calls say whether the test has failed.
func withOutcome(ctx context.Context, failed bool) context.Context {
	return context.WithValue(ctx, fieldsKey{}, [2]string{failedField, strconv.FormatBool(failed)})
}

func setFields(request *http.Request) {
	if field, is := request.Context().Value(fieldsKey{}).([2]string); is {
		request.Header.Set(field[0], field[1])
	}
}
