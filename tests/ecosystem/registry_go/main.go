package main

import (
	"context"
	"errors"
	"log"
	"os"
	"reflect"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	order = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	wider = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"}]}`
	tea   = `syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; message Tea { google.protobuf.Timestamp at = 1; }`
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatalf("%v", err)
	}
	return value
}

func check(is bool, what any) {
	if !is {
		log.Fatalf("not so: %v", what)
	}
}

func franz(url string) {
	ctx := context.Background()
	client := must(sr.NewClient(sr.URLs(url)))
	made := must(client.CreateSchema(ctx, "order-value", sr.Schema{Schema: order}))
	check(made.Version == 1 && made.ID == 1, made)
	again := must(client.CreateSchema(ctx, "order-value", sr.Schema{Schema: order}))
	check(again.ID == made.ID, again)
	_, err := client.CreateSchema(ctx, "order-value", sr.Schema{Schema: wider})
	var refusal *sr.ResponseError
	check(errors.As(err, &refusal) && refusal.ErrorCode == 409, err)
	fits := must(client.CheckCompatibility(ctx, "order-value", -1, sr.Schema{Schema: wider}))
	check(!fits.Is, fits)
	check(must(client.LookupSchema(ctx, "order-value", sr.Schema{Schema: order})).ID == made.ID, "lookup")
	proto := must(client.CreateSchema(ctx, "tea-value", sr.Schema{Schema: tea, Type: sr.TypeProtobuf}))
	check(must(client.SchemaByID(ctx, proto.ID)).Type == sr.TypeProtobuf, proto)
	check(reflect.DeepEqual(must(client.Subjects(ctx)), []string{"order-value", "tea-value"}), "subjects")
	check(len(must(client.SchemaUsagesByID(ctx, made.ID))) == 1, "usages")
	for _, result := range client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatNone}, "order-value") {
		check(result.Err == nil && result.Level == sr.CompatNone, result)
	}
	check(must(client.CreateSchema(ctx, "order-value", sr.Schema{Schema: wider})).Version == 2, "NONE")
	for _, result := range client.SetMode(ctx, sr.ModeReadOnly, "order-value") {
		check(result.Err == nil, result)
	}
	check(client.DeleteSchema(ctx, "order-value", 2, sr.SoftDelete) != nil, "READONLY")
	check(len(must(client.SupportedTypes(ctx))) == 3, "types")
	var serde sr.Serde
	serde.Register(made.ID, "", sr.EncodeFn(func(any) ([]byte, error) { return []byte{14}, nil }))
	check(reflect.DeepEqual(must(serde.Encode("")), []byte{0, 0, 0, 0, 1, 14}), "serde")
}

func main() {
	franz(os.Args[1])
}
