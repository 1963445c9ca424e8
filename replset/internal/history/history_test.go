package history

import (
	"strings"
	"testing"
	"time"
)

func read(key string, list ...int64) Step    { return Step{Key: key, Read: list} }
func push(key string, v int64) Step          { return Step{Key: key, Append: v} }
func ok(at int, steps ...Step) Txn           { return txn(OK, at, steps...) }
func failed(at int, steps ...Step) Txn       { return txn(Failed, at, steps...) }
func maybe(at int, steps ...Step) Txn        { return txn(Maybe, at, steps...) }
func lists2(x, y []int64) map[string][]int64 { return map[string][]int64{"x": x, "y": y} }

// txn takes from at to at+100, so that transactions of the tests overlap unless they
// mean not to.
func txn(o Outcome, at int, steps ...Step) Txn {
	return Txn{Outcome: o, Steps: steps, Call: time.Duration(at), Return: time.Duration(at + 100)}
}

func TestListsRejects(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		final map[string][]int64
		txns  []Txn
	}{
		"nothing":                                     {Empty, lists2(nil, nil), nil},
		"nothing acknowledged":                        {Empty, lists2(nil, nil), []Txn{maybe(0, read("x"), push("x", 1)), failed(0, push("y", 2))}},
		"nothing read":                                {Empty, lists2([]int64{1}, nil), []Txn{ok(0, push("x", 1))}},
		"own append not seen":                         {Internal, lists2([]int64{1}, nil), []Txn{ok(0, push("x", 1), read("x"))}},
		"two reads in one transaction":                {Internal, lists2([]int64{1}, nil), []Txn{ok(0, push("x", 1)), ok(0, read("x"), read("x", 1))}},
		"own append before the rest":                  {Internal, lists2([]int64{1, 2}, nil), []Txn{ok(0, push("x", 1)), ok(0, read("x", 1), push("x", 2), read("x", 2, 1))}},
		"a value from nowhere":                        {Garbage, lists2([]int64{1}, nil), []Txn{ok(0, push("x", 1)), ok(0, read("x", 1, 9))}},
		"a value of another list":                     {Garbage, lists2([]int64{1}, []int64{1}), []Txn{ok(0, push("x", 1)), ok(0, read("x", 1))}},
		"an append applied twice":                     {Duplicate, lists2([]int64{1, 1}, nil), []Txn{ok(0, push("x", 1)), ok(0, read("x", 1))}},
		"two orders":                                  {Incompatible, lists2([]int64{1, 2}, nil), []Txn{ok(0, push("x", 1)), ok(0, push("x", 2)), ok(0, read("x", 2))}},
		"an acknowledged append is gone":              {Lost, lists2(nil, nil), []Txn{ok(0, push("x", 1)), ok(0, read("x"))}},
		"an acknowledged append was seen and is gone": {Lost, lists2(nil, nil), []Txn{ok(0, push("x", 1)), ok(0, read("x", 1))}},
		"a list is gone":                              {Lost, map[string][]int64{"x": {1}}, []Txn{ok(0, push("x", 1)), ok(0, read("y"))}},
		"a read of what was aborted":                  {G1a, lists2([]int64{1}, nil), []Txn{failed(0, push("x", 1)), ok(0, read("x", 1), push("y", 2))}},
		"what was aborted is there in the end":        {G1a, lists2([]int64{1}, []int64{2}), []Txn{failed(0, push("x", 1)), ok(0, read("x"), push("y", 2))}},
		"half a transaction":                          {G1b, lists2([]int64{1, 2}, nil), []Txn{ok(0, push("x", 1), push("x", 2)), ok(0, read("x", 1))}},
		"half a transaction in the end":               {G1b, lists2([]int64{1}, nil), []Txn{maybe(0, push("x", 1), push("x", 2)), ok(0, push("y", 3), read("y", 3))}},
		"writes in two orders":                        {G0, lists2([]int64{1, 2}, []int64{4, 3}), []Txn{ok(0, push("x", 1), push("y", 3)), ok(0, push("x", 2), push("y", 4)), ok(0, read("x", 1, 2))}},
		"each read what the other wrote":              {G1c, lists2([]int64{1}, []int64{2}), []Txn{ok(0, push("x", 1), read("y", 2)), ok(0, push("y", 2), read("x", 1))}},
		"each read, one open":                         {G1c, lists2([]int64{1, 3}, []int64{2}), []Txn{maybe(0, push("x", 1), push("y", 2)), ok(0, read("x", 1), push("x", 3)), ok(0, read("x", 1, 3), read("y"))}},
		"lost update":                                 {GSingle, lists2([]int64{1, 2}, nil), []Txn{ok(0, read("x"), push("x", 1)), ok(0, read("x"), push("x", 2))}},
		"read skew":                                   {GSingle, lists2([]int64{1}, []int64{2}), []Txn{ok(0, push("x", 1), push("y", 2)), ok(0, read("x", 1), read("y"))}},
		"read skew the other way":                     {GSingle, lists2([]int64{1}, []int64{2}), []Txn{ok(0, push("x", 1), push("y", 2)), ok(0, read("y", 2), read("x"))}},
		"long fork":                                   {GNonadjacent, lists2([]int64{1}, []int64{2}), []Txn{ok(0, push("x", 1)), ok(0, push("y", 2)), ok(0, read("x", 1), read("y")), ok(0, read("x"), read("y", 2))}},
		"a writer did not see who was before it":      {Stale, lists2([]int64{1}, []int64{2}), []Txn{ok(0, push("x", 1)), ok(500, read("x"), push("y", 2))}},
	} {
		got := Lists(c.txns, c.final)
		if len(got) == 0 {
			t.Errorf("%s passes", name)
			continue
		}
		// "each read, one open" is read skew of two: its name may be either.
		if got[0].Name != c.want && !(name == "each read, one open" && got[0].Name == GSingle) {
			t.Errorf("%s gives %v, want %s", name, got, c.want)
		}
	}
}

func TestListsAccepts(t *testing.T) {
	for name, c := range map[string]struct {
		final map[string][]int64
		txns  []Txn
	}{
		"one after the other":                 {lists2([]int64{1, 2}, nil), []Txn{ok(0, push("x", 1), read("x", 1)), ok(200, read("x", 1), push("x", 2))}},
		"write skew":                          {lists2([]int64{1}, []int64{2}), []Txn{ok(0, read("y"), push("x", 1)), ok(0, read("x"), push("y", 2))}},
		"an open one that was committed":      {lists2([]int64{1}, nil), []Txn{maybe(0, push("x", 1)), ok(0, read("x", 1), push("y", 2)), ok(0, read("y", 2))}[:2:2]},
		"an open one that was not":            {lists2(nil, []int64{2}), []Txn{maybe(0, push("x", 1)), ok(0, read("x"), push("y", 2))}},
		"what an aborted one read is its own": {lists2([]int64{1}, nil), []Txn{ok(0, push("x", 1)), failed(0, read("x", 7)), ok(0, read("x", 1))}},
		"a reader may be late":                {lists2([]int64{1}, nil), []Txn{ok(0, push("x", 1)), ok(500, read("x"))}},
		"several appends":                     {lists2([]int64{1, 2, 3}, nil), []Txn{ok(0, push("x", 1), read("x", 1), push("x", 2)), ok(200, read("x", 1, 2), push("x", 3), read("x", 1, 2, 3))}},
	} {
		if name == "an open one that was committed" {
			c.final["y"] = []int64{2}
		}
		if got := Lists(c.txns, c.final); len(got) > 0 {
			t.Errorf("%s gives %v", name, got)
		}
	}
}

// op of the tests takes from at to at+10.
func op(at int, o Op) Op {
	o.Call, o.Return = time.Duration(at), time.Duration(at+10)
	if o.Key == "" {
		o.Key = "k"
	}
	return o
}

func TestRegistersRejects(t *testing.T) {
	w := func(at int, v int64) Op { return op(at, Op{Client: 1, Kind: Write, Value: v, Outcome: OK}) }
	r := func(at int, v, n int64) Op {
		return op(at, Op{Client: 2, Kind: Read, Value: v, Number: n, Outcome: OK})
	}
	swap := func(at int, was, is, n int64) Op {
		return op(at, Op{Client: at, Kind: Swap, Expect: was, Value: is, Number: n, Swapped: true, Outcome: OK})
	}
	open := func(o Op) Op { o.Outcome = Maybe; return o }
	for name, ops := range map[string][]Op{
		"nothing":                         nil,
		"nothing told":                    {w(0, 1)},
		"a stale read":                    {w(0, 1), r(20, 0, 0)},
		"a read goes back":                {open(w(0, 1)), r(20, 1, 1), r(40, 0, 0)},
		"a write is lost":                 {w(0, 1), w(20, 2), r(40, 2, 1)},
		"a write counts twice":            {w(0, 1), r(20, 1, 2)},
		"a value from nowhere":            {w(0, 1), r(20, 7, 1)},
		"a version won twice":             {swap(0, 0, 1, 1), swap(20, 0, 2, 1)},
		"a version won twice at once":     {swap(0, 0, 1, 1), swap(5, 0, 2, 1)},
		"a swap that should have swapped": {op(0, Op{Kind: Swap, Expect: 0, Value: 1, Outcome: OK})},
		"a swap that did and said no":     {op(0, Op{Kind: Swap, Expect: 0, Value: 1, Outcome: OK}), r(20, 1, 1)},
		"read before it was written":      {r(0, 1, 1), w(20, 1)},
		"a failed write was read":         {op(0, Op{Kind: Write, Value: 1, Outcome: Failed}), r(20, 1, 1)},
	} {
		if err := Registers(ops, 10*time.Second); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	for name, ops := range map[string][]Op{
		"in order":               {w(0, 1), r(20, 1, 1), swap(40, 1, 2, 2), r(60, 2, 2)},
		"at once":                {w(0, 1), r(5, 0, 0), r(6, 1, 1)},
		"open and done late":     {open(w(0, 1)), r(20, 0, 0), r(40, 1, 1)},
		"open and never":         {open(w(0, 1)), r(20, 0, 0), r(40, 0, 0)},
		"an open swap that did":  {open(swap(0, 0, 5, 0)), r(20, 5, 1)},
		"an open swap that lost": {w(0, 1), open(swap(20, 0, 5, 0)), r(40, 1, 1)},
		"a swap that lost":       {w(0, 1), op(20, Op{Kind: Swap, Expect: 0, Value: 9, Outcome: OK}), r(40, 1, 1)},
		"a failed write":         {op(0, Op{Kind: Write, Value: 1, Outcome: Failed}), r(20, 0, 0)},
	} {
		if err := Registers(ops, 10*time.Second); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Registers([]Op{r(0, 0, 0)}, time.Nanosecond); err == nil || !strings.Contains(err.Error(), "within") {
		t.Logf("a search without time gave %v", err) // it may be done before it looks at the clock
	}
}

func TestSessionsAndSources(t *testing.T) {
	r := func(client int, v, n int64) Op {
		return op(0, Op{Client: client, Kind: Read, Value: v, Number: n, Outcome: OK})
	}
	s := func(client int, n int64) Op {
		return op(0, Op{Client: client, Kind: Swap, Value: n * 10, Number: n, Swapped: true, Outcome: OK})
	}
	if _, err := Sessions([]Op{r(1, 10, 1), r(2, 0, 0), r(1, 20, 2), r(2, 10, 1)}); err != nil {
		t.Error(err)
	}
	for name, ops := range map[string][]Op{
		"a read goes back":      {r(1, 20, 2), r(1, 10, 1)},
		"an own swap not seen":  {s(1, 3), r(1, 20, 2)},
		"one number two values": {r(1, 10, 1), r(1, 11, 1)},
	} {
		if _, err := Sessions(ops); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if n, _ := Sessions([]Op{r(1, 0, 0), r(2, 0, 0)}); n != 0 {
		t.Errorf("%d reads were compared with nothing", n)
	}
	w := op(50, Op{Kind: Write, Value: 5, Outcome: OK})
	late, failed := r(1, 5, 1), w
	late.Return = 60
	failed.Outcome = Failed
	if err := Sources([]Op{late, r(1, 0, 0)}, []Op{w}); err != nil {
		t.Error(err)
	}
	for name, c := range map[string][2][]Op{
		"nobody wrote it":  {{r(1, 9, 1)}, {w}},
		"it was refused":   {{late}, {failed}},
		"it was too early": {{r(1, 5, 1)}, {w}},
	} {
		if Sources(c[0], c[1]) == nil {
			t.Errorf("%s passes", name)
		}
	}
}
