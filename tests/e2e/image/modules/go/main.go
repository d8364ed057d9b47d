// Testcontainers' module for Kafka in Go, started with the image that the first word names, and a round trip.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/kafka"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

const login = `org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="pencil";`

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func roundTrip(name string, container *kafka.KafkaContainer, options ...kgo.Opt) {
	ctx := context.Background()
	brokers, err := container.Brokers(ctx)
	must(err)
	options = append(options, kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("t"), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	client, err := kgo.NewClient(options...)
	must(err)
	defer client.Close()
	must(client.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("one")}).FirstErr())
	for {
		for _, record := range client.PollFetches(ctx).Records() {
			fmt.Printf("%s: %s\n", name, record.Value)
			must(testcontainers.TerminateContainer(container))
			return
		}
	}
}

func main() {
	ctx := context.Background()
	container, err := kafka.Run(ctx, os.Args[1], kafka.WithClusterID("4L6g3nShT-eMCtK--X86sw"))
	must(err)
	roundTrip("kafka.Run", container)
	// The module has no option for SASL; its variables take Kafka's settings.
	container, err = kafka.Run(ctx, os.Args[1], testcontainers.WithEnv(map[string]string{
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":                  "BROKER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
		"KAFKA_LISTENER_NAME_PLAINTEXT_SASL_ENABLED_MECHANISMS": "PLAIN",
		"KAFKA_LISTENER_NAME_PLAINTEXT_PLAIN_SASL_JAAS_CONFIG":  login,
	}))
	must(err)
	user := plain.Auth{User: "alice", Pass: "pencil"}
	roundTrip("kafka.Run with SASL", container, kgo.SASL(user.AsMechanism()))
}
