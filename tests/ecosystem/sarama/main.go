// Prints as JSON what a monitor shows of a cluster, asked by sarama as kafka_exporter and Burrow ask: brokers, topics,
// offsets, groups with members and commits, settings, log sizes, ACLs refused or listed.
//
//	sarama BOOTSTRAP
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/IBM/sarama"
)

type partition struct {
	Leader, Replicas, InSync int
	Oldest, Newest           int64
}

type group struct {
	State, Protocol string
	Members         map[string][]string // client id -> topic-partition
	Committed       map[string]int64
}

type view struct {
	Brokers map[string]string
	Topics  map[string][]partition
	Configs map[string]string // retention.ms of each topic
	Bytes   map[string]int64
	Groups  map[string]group
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.ClientID = "monitor"
	client, err := sarama.NewClient(strings.Split(os.Args[1], ","), config)
	must(err)
	admin, err := sarama.NewClusterAdminFromClient(client)
	must(err)
	found := view{map[string]string{}, map[string][]partition{}, map[string]string{}, map[string]int64{}, map[string]group{}}
	var ids []int32
	for _, broker := range client.Brokers() {
		found.Brokers[fmt.Sprint(broker.ID())] = broker.Addr()
		ids = append(ids, broker.ID())
	}
	topics(client, admin, &found)
	dirs, err := admin.DescribeLogDirs(ids)
	must(err)
	for _, each := range dirs {
		for _, dir := range each {
			for _, topic := range dir.Topics {
				for _, part := range topic.Partitions {
					found.Bytes[fmt.Sprintf("%s-%d", topic.Topic, part.PartitionID)] = part.Size
				}
			}
		}
	}
	groups(admin, &found)
	must(json.NewEncoder(os.Stdout).Encode(found))
	must(admin.Close())
}

func topics(client sarama.Client, admin sarama.ClusterAdmin, found *view) {
	listed, err := admin.ListTopics()
	must(err)
	var names []string
	for name := range listed {
		names = append(names, name)
	}
	sort.Strings(names)
	described, err := admin.DescribeTopics(names)
	must(err)
	for _, topic := range described {
		parts := make([]partition, len(topic.Partitions))
		for _, part := range topic.Partitions {
			oldest, err := client.GetOffset(topic.Name, part.ID, sarama.OffsetOldest)
			must(err)
			newest, err := client.GetOffset(topic.Name, part.ID, sarama.OffsetNewest)
			must(err)
			parts[part.ID] = partition{int(part.Leader), len(part.Replicas), len(part.Isr), oldest, newest}
		}
		found.Topics[topic.Name] = parts
		entries, err := admin.DescribeConfig(sarama.ConfigResource{
			Type: sarama.TopicResource, Name: topic.Name, ConfigNames: []string{"retention.ms"}})
		must(err)
		for _, entry := range entries {
			found.Configs[topic.Name] = entry.Value
		}
	}
}

func groups(admin sarama.ClusterAdmin, found *view) {
	listed, err := admin.ListConsumerGroups()
	must(err)
	var names []string
	for name := range listed {
		names = append(names, name)
	}
	described, err := admin.DescribeConsumerGroups(names)
	must(err)
	for _, each := range described {
		made := group{each.State, each.Protocol, map[string][]string{}, map[string]int64{}}
		for _, member := range each.Members {
			assigned, err := member.GetMemberAssignment()
			must(err)
			places := []string{}
			if assigned != nil {
				for topic, parts := range assigned.Topics {
					for _, part := range parts {
						places = append(places, fmt.Sprintf("%s-%d", topic, part))
					}
				}
			}
			sort.Strings(places)
			made.Members[member.ClientId] = places
		}
		offsets, err := admin.ListConsumerGroupOffsets(each.GroupId, nil)
		must(err)
		for topic, parts := range offsets.Blocks {
			for part, block := range parts {
				made.Committed[fmt.Sprintf("%s-%d", topic, part)] = block.Offset
			}
		}
		found.Groups[each.GroupId] = made
	}
}
