// Writes, reads in a group and asks for offsets with kafka-go; kafka_go.py says what with, and checks what it prints.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// produce writes the values "record FIRST" to "record LAST-1", to the partitions by their number.
func produce(address, topic string, first, last int) {
	writer := &kafka.Writer{
		Addr: kafka.TCP(address), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond,
		Balancer: kafka.BalancerFunc(func(message kafka.Message, partitions ...int) int {
			number, err := strconv.Atoi(string(message.Key))
			check(err)
			return partitions[number%len(partitions)]
		}),
	}
	messages := make([]kafka.Message, 0, last-first)
	for number := first; number < last; number++ {
		messages = append(messages, kafka.Message{
			Key: []byte(strconv.Itoa(number)), Value: []byte(fmt.Sprintf("record %d", number))})
	}
	check(writer.WriteMessages(context.Background(), messages...))
	check(writer.Close())
}

// consume reads so many records as a member of the group, prints and commits each; with 0, until it is killed.
func consume(address, topic, group string, count int) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{address}, Topic: topic, GroupID: group, StartOffset: kafka.FirstOffset,
		MaxWait: 100 * time.Millisecond, SessionTimeout: 6 * time.Second, RebalanceTimeout: 6 * time.Second,
		HeartbeatInterval: 500 * time.Millisecond,
	})
	for read := 0; count == 0 || read < count; read++ {
		message, err := reader.FetchMessage(context.Background())
		check(err)
		fmt.Printf("%d %s\n", message.Partition, message.Value)
		check(reader.CommitMessages(context.Background(), message))
	}
	check(reader.Close())
}

// offsets prints the group's committed offset of each partition.
func offsets(address, topic, group string, partitions int) {
	client := &kafka.Client{Addr: kafka.TCP(address), Timeout: 30 * time.Second}
	asked := make([]int, partitions)
	for partition := range asked {
		asked[partition] = partition
	}
	answer, err := client.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{
		GroupID: group, Topics: map[string][]int{topic: asked}})
	check(err)
	check(answer.Error)
	for _, partition := range answer.Topics[topic] {
		check(partition.Error)
		fmt.Printf("%d %d\n", partition.Partition, partition.CommittedOffset)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func main() {
	address, topic := os.Args[2], os.Args[3]
	switch os.Args[1] {
	case "produce":
		produce(address, topic, number(os.Args[4]), number(os.Args[5]))
	case "consume":
		consume(address, topic, os.Args[4], number(os.Args[5]))
	case "offsets":
		offsets(address, topic, os.Args[4], number(os.Args[5]))
	}
}
