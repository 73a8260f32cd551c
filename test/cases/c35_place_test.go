package cases

// C35 Same key, different partition than Java
//
// Source: tulios/kafkajs#357, kafkaex/kafka_ex#398, confluentinc/confluent-kafka-python#1481.
//
// Ideal: every key gets the partition that the Java client gives it; the key's
// bytes are the UTF-8 of the ordering key, with nothing normalised or trimmed.
//
// The judge is Kafka's own Java producer, which writes the same keys to a topic of
// as many partitions. A key of the byte 0x00 cannot come out of Postgres, which has no
// such text; the vectors of package router hold it.

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// javaPlaces produces each key of its input, a line of Base64, with the default partitioner.
const javaPlaces = `
import java.io.*;
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

public class Main {
	public static void main(String[] args) throws Exception {
		Properties p = new Properties();
		p.put("bootstrap.servers", args[0]);
		try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
				BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
			for (String line; (line = in.readLine()) != null;) {
				producer.send(new ProducerRecord<>(args[1], Base64.getDecoder().decode(line), null), (meta, e) -> {
					if (e != null) {
						throw new RuntimeException(e);
					}
				});
			}
			producer.flush();
		}
	}
}`

func TestC35EveryKeyGoesToThePartitionOfTheJavaClient(t *testing.T) {
	t.Parallel()
	const partitions, count = 15, 10_000
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, partitions, nil))
	h.Init(t)
	keys := placedKeys(count)
	h.Start(t)
	h.Insert(t, "orders", keys...)

	java := k.Topic(t, partitions, nil)
	var lines strings.Builder
	for _, key := range keys {
		lines.WriteString(base64.StdEncoding.EncodeToString([]byte(key)) + "\n")
	}
	kafkaserver.Java(t, javaPlaces, strings.NewReader(lines.String()), strings.Join(k.Brokers(), ","), java)

	places := map[string]int32{}
	for _, rec := range k.Consume(t, java) {
		places[string(rec.Key)] = rec.Partition
	}
	if len(places) != len(keys) {
		t.Fatalf("the Java client placed %d keys, want %d", len(places), len(keys))
	}
	records := k.ConsumeN(t, len(keys), soon, h.Topic)
	if len(records) != len(keys) {
		t.Errorf("%d records, want %d", len(records), len(keys))
	}
	used := map[int32]bool{}
	for _, rec := range records {
		place, known := places[string(rec.Key)]
		used[rec.Partition] = true
		switch {
		case !known:
			t.Errorf("record key %q is none of the ordering keys", rec.Key)
		case place != rec.Partition:
			t.Errorf("key %q is in partition %d, Java puts it in %d", rec.Key, rec.Partition, place)
		}
		delete(places, string(rec.Key))
	}
	if len(places) > 0 || len(used) != partitions {
		t.Errorf("%d keys did not arrive; %d partitions were used, want %d", len(places), len(used), partitions)
	}
}

// placedKeys are n different keys, those of the reports among them.
func placedKeys(n int) []string {
	keys := []string{
		"100:48069", "TT0124", " ", "  ", " a", "a ", "A", "a", "\t", "\n", "\x7f", "é", "e\u0301", "Å", "A\u030a", "\u212b", "ﬁ", "ß", "SS",
		"\ufeffkey", "\u200b", "заказ-1", "Заказ-1", "注文", "😀", "👩‍👩‍👧‍👦", "🇺🇦", strings.Repeat("k", 10_000), "null", "NULL", "0",
	}
	alphabets := []string{"abcdefghijklmnopqrstuvwxyz0123456789-_:", "абвгдежзийклмнопрстуфхцчшщъыьэюя", "😀😃😄😁🙈🚀🇩🇪", "éeuü\u0301\u0308ñ"}
	seen := map[string]bool{}
	for _, key := range keys {
		seen[key] = true
	}
	random := rand.New(rand.NewPCG(35, 35))
	for i := 0; len(keys) < n; i++ {
		alphabet := []rune(alphabets[i%len(alphabets)])
		var b strings.Builder
		for range 1 + random.IntN(40) {
			b.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		key := b.String()
		if i%5 == 0 {
			key = fmt.Sprintf("%d:%d", random.IntN(1000), random.IntN(100_000))
		}
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}
