package main

import (
	"errors"
	"log"
	"os"
	"reflect"

	"github.com/riferrei/srclient"
)

const (
	order = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	wider = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"}]}`
	box   = `{"type":"record","name":"Box","fields":[{"name":"order","type":"Order"}]}`
	limit = `{"type":"object","properties":{"n":{"type":"integer","maximum":3}}}`
	tea   = `syntax = "proto3"; package shop; message Tea { int64 cents = 1; }`
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

func refused(err error, code int) {
	var found srclient.Error
	check(errors.As(err, &found) && found.Code == code, err)
}

func main() {
	client := srclient.NewSchemaRegistryClient(os.Args[1])
	client.CachingEnabled(false)
	client.CodecCreationEnabled(true)
	made := must(client.CreateSchema("order-value", order, srclient.Avro))
	check(made.ID() == 1, made)
	check(must(client.CreateSchema("order-value", order, srclient.Avro)).ID() == 1, "once more")
	read := must(client.GetSchema(1))
	data := must(read.Codec().BinaryFromNative(nil, map[string]any{"id": int64(7)}))
	native, _, err := read.Codec().NativeFromBinary(data)
	check(err == nil && reflect.DeepEqual(native, map[string]any{"id": int64(7)}), native)

	_, err = client.CreateSchema("order-value", wider, srclient.Avro)
	refused(err, 409)
	check(!must(client.IsSchemaCompatible("order-value", wider, "latest", srclient.Avro)), "it does not fit")
	check(*must(client.GetGlobalCompatibilityLevel()) == srclient.Backward, "the level")
	must(client.ChangeSubjectCompatibilityLevel("order-value", srclient.None))
	check(*must(client.GetCompatibilityLevel("order-value", true)) == srclient.None, "the changed level")
	must(client.CreateSchema("order-value", wider, srclient.Avro))
	check(reflect.DeepEqual(must(client.GetSchemaVersions("order-value")), []int{1, 2}), "versions")

	client.CodecCreationEnabled(false)
	reference := srclient.Reference{Name: "Order", Subject: "order-value", Version: 1}
	boxed := must(client.CreateSchema("box-value", box, srclient.Avro, reference))
	check(reflect.DeepEqual(must(client.GetSchema(boxed.ID())).References(), []srclient.Reference{reference}), boxed)
	json := must(client.CreateSchema("limit-value", limit, srclient.Json))
	check(*must(client.GetSchema(json.ID())).SchemaType() == srclient.Json, json)
	proto := must(client.CreateSchema("tea-value", tea, srclient.Protobuf))
	check(must(client.LookupSchema("tea-value", tea, srclient.Protobuf)).ID() == proto.ID(), proto)
	check(must(client.GetLatestSchema("tea-value")).ID() == proto.ID(), "latest")
	check(len(must(client.GetSubjectVersionsById(proto.ID()))) == 1, "versions of an id")
	check(reflect.DeepEqual(must(client.GetSubjects()), []string{"box-value", "limit-value", "order-value", "tea-value"}), "subjects")

	check(client.DeleteSubject("tea-value", true) == nil, "deletion, softly and for good")
	refused(client.DeleteSubjectByVersion("order-value", 1, false), 42206)
	_, err = client.GetLatestSchema("tea-value")
	refused(err, 40401)
	_, err = client.GetSchema(99)
	refused(err, 40403)
}
