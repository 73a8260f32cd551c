package router

import (
	"fmt"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The first six are from Kafka's UtilsTest.testMurmur2; the others were computed
// with the Java client for the outbox contract.
func TestMurmur2AgreesWithJavaVectors(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc":                                  479470107,
		"order-1":                              1221710326,
		"order-42":                             501153024,
		"ключ":                                 2122343024,
		"0198f3a0-0000-7000-8000-000000000001": -296181842,
	} {
		if got := murmur2([]byte(key)); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestPartitionIsThatOfTheOutboxContract(t *testing.T) {
	t.Parallel()
	partitions := []uint32{3, 6, 12, 50}
	for key, want := range map[string][4]uint32{
		"order-1":                              {1, 4, 10, 26},
		"order-42":                             {0, 0, 0, 24},
		"ключ":                                 {2, 2, 8, 24},
		"0198f3a0-0000-7000-8000-000000000001": {0, 0, 6, 6},
	} {
		for i, n := range partitions {
			if got := hash([]byte(key)) % n; got != want[i] {
				t.Errorf("%q of %d partitions: got %d, want %d", key, n, got, want[i])
			}
		}
	}
}

// Case C35.
func TestHashNeverDiffersFromTheKafkaHasher(t *testing.T) {
	t.Parallel()
	keys := []string{"100:48069", "TT0124", " ", "\x00", "\x00\x00\x00\x00", "é", "e\u0301", "😀", "👩‍👩‍👧", "Заказ", "\xff\xfe\xfd"}
	for i := len(keys); i < 10_000; i++ {
		keys = append(keys, fmt.Sprintf("%x-%d-ключ-%c", i*2654435761, i, rune('😀'+i%80))[i%7:])
	}
	theirs := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	negative := 0
	for _, key := range keys {
		if murmur2([]byte(key)) < 0 {
			negative++
		}
		// MaxInt32 partitions show nearly the whole hash, 15 a plain topic's.
		for _, n := range []int{15, math.MaxInt32} {
			want := theirs.Partition(&kgo.Record{Key: []byte(key)}, n)
			if got := int(hash([]byte(key))) % n; got != want {
				t.Fatalf("key %q of %d partitions: got %d, kgo has %d", key, n, got, want)
			}
		}
	}
	if negative < 4000 {
		t.Fatalf("only %d of %d hashes are negative: the keys prove little", negative, len(keys))
	}
}
