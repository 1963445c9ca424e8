package check_test

import (
	"fmt"
	"time"

	"github.com/assaylab/assay/lab/check"
)

func ExampleClear() {
	durable := check.Guard("durable", func() check.Result {
		return check.SetExact("durable", check.SetHistory[string]{
			Acked: []check.SetOp[string]{{Insert: []string{"a"}}, {Insert: []string{"b"}}, {Delete: []string{"a"}}},
			Maybe: []check.SetOp[string]{{Insert: []string{"c"}}},
			Found: []string{"b", "c"},
		})
	})
	durable.Faults = map[string]int{"kill": 1}
	durable = durable.Require(check.Requirement{Operations: 3, Kinds: []string{"insert", "delete"}, Faults: []string{"kill"}})

	clearance, merged := check.Clear([]string{"durable", "fresh"}, []check.Result{durable})
	for _, r := range merged {
		fmt.Printf("%s: %v %q\n", r.Name, r.Verdict, r.Message)
	}
	fmt.Println("clear:", clearance.Valid())
	// Output:
	// durable: pass ""
	// fresh: unchecked "no result under this name"
	// clear: false
}

func ExampleLinearizableOps() {
	res := check.LinearizableOps("register", check.Register("0"), []check.Op{
		{Client: 1, Kind: check.KindWrite, Key: "x", Value: "1", Outcome: check.OutcomeOK, Call: 0, Return: 10},
		{Client: 2, Kind: check.KindRead, Key: "x", Value: "0", Outcome: check.OutcomeOK, Call: 11, Return: 20},
	}, time.Minute)
	fmt.Println(res.Verdict, res.Message)
	fmt.Println(res.Examples[0])
	// Output:
	// fail 1 of 1 parts of the history have no legal order
	// client 2: read "x" returned "0" [11ns, 20ns] fits nowhere after 1 of 2 operations, which leave "1"
}

func ExampleStaleness() {
	res := check.Staleness("fresh", check.StaleHistory{
		Writes: []check.StaleWrite{
			{Key: "role", Revision: 1, Start: 0, Acked: 5 * time.Millisecond},
			{Key: "role", Revision: 2, Start: 10 * time.Millisecond, Acked: 15 * time.Millisecond},
		},
		Reads: []check.StaleRead{
			{Key: "role", Start: 16 * time.Millisecond, End: 17 * time.Millisecond, Revision: 1, Status: check.ReadOK},
		},
	})
	fmt.Println(res.Verdict, res.Message)
	fmt.Println(res.Examples[0])
	// Output:
	// fail 1 stale
	// stale: read of "role" from 16ms to 17ms returned revision 1, when 2 had been acknowledged
}
