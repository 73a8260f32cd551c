package mongotable

import (
	"testing"

	"github.com/walrelay/walrelay/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m, 8) }
