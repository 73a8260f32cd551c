package publish

import "github.com/twmb/franz-go/pkg/kgo"

// partitioner puts each record into the partition that its lane stands for. It
// answers -1 (and the record fails, to be sent again later) when franz-go does
// not know that partition yet, rather than take another one.
type partitioner struct{}

func (partitioner) ForTopic(string) kgo.TopicPartitioner { return partitioner{} }

// RequiresConsistency: always; a partition without a leader is waited for.
func (partitioner) RequiresConsistency(*kgo.Record) bool { return true }

func (partitioner) Partition(r *kgo.Record, n int) int {
	switch c := r.Context.(type) {
	case *item:
		if int(c.part) < n {
			return int(c.part)
		}
	case *letter:
		return int(c.hash % uint32(n))
	}
	return -1
}
