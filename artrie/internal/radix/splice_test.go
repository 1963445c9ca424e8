package radix

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// whole is the encoding of a tree as one block; what must have a block of its own is
// the same reference wherever it stands.
func whole(t interface{ Fatal(...any) }, p Ref) (payload []byte) {
	pk := &Packer{Gen: 9, Whole: 1 << 20, Src: &Source{}, Write: func(b []byte) (uint64, error) {
		payload = bytes.Clone(b)
		return Word(9, 64, 64), nil
	}}
	if _, err := pk.Pack(&p); err != nil {
		t.Fatal(err)
	}
	return payload
}

// TestABlockTakesAKeyAsItsNodesDo puts keys into blocks and into the nodes of the same
// blocks. Both must mean the same, in the same shape, and count the same.
func TestABlockTakesAKeyAsItsNodesDo(t *testing.T) {
	stayed := map[outcome]int{}
	rapid.Check(t, func(t *rapid.T) {
		var root Ref
		e := &Edit{ID: 1, Src: &Source{}}
		for _, k := range rapid.SliceOfN(keys(), 2, 30).Draw(t, "keys") {
			if _, err := e.Put(&root, k, nil, true); err != nil {
				t.Fatal(err)
			}
		}
		b := whole(t, root)
		w := Word(1, 64, int(BlockSize(len(b))))
		block, ok := NewBlock(b, w)
		if !ok {
			return // one key
		}
		nodes := unfolded(block, 1)
		for i := range 20 {
			var known []string
			if err := Scan(&block, "", e.Src, func(k, _ []byte) bool { known = append(known, string(k)); return true }); err != nil {
				t.Fatal(err)
			}
			k, v := keys().Draw(t, "k"), values().Draw(t, "v")
			if rapid.Bool().Draw(t, "near") {
				k = rapid.SampledFrom(known).Draw(t, "to")
				k = k[:rapid.IntRange(0, len(k)).Draw(t, "cut")] + rapid.SampledFrom([]string{"", "a", "\xff"}).Draw(t, "more")
			}
			replace := rapid.Bool().Draw(t, "replace")
			was, payload := block, bytes.Clone(encoded(block))
			to := &Edit{ID: uint64(i + 2), Src: e.Src}
			q, how, err := to.put(&block, k, v, replace)
			if err != nil {
				t.Fatal(err)
			}
			p, wanted, err := e.put(&nodes, k, v, replace)
			if err != nil || how != wanted {
				t.Fatalf("%q: outcome %d in the block, %d in its nodes (%v)", k, how, wanted, err)
			}
			nodes = p
			if got, want := whole(t, q), whole(t, nodes); !bytes.Equal(got, want) {
				t.Fatalf("%q: the block has become\n%x, its nodes\n%x", k, got, want)
			}
			if how == same && (q != was || to.Bytes != 0 || to.Dead != 0) {
				t.Fatalf("%q changed nothing, and is counted", k)
			}
			if d := Weigh(q) - Weigh(was); to.Bytes != d {
				t.Fatalf("%q: memory counted %d, is %d", k, to.Bytes, d)
			}
			if d := BlockSize(len(payload)); how != same && onDisk(*stateOf(was)) && to.Dead != d {
				t.Fatalf("%q: %d bytes dead, the block had %d", k, to.Dead, d)
			}
			if !bytes.Equal(encoded(was), payload) {
				t.Fatalf("%q changed a block that others may read", k)
			}
			if !isBlock(q) {
				return
			}
			stayed[how]++
			if len(encoded(q)) > max(WholeBlock, len(payload)) {
				t.Fatalf("a block of %d bytes has become one of %d", len(payload), len(encoded(q)))
			}
			if how != same && onDisk(*stateOf(q)) {
				t.Fatal("a changed block has an address")
			}
			block = q
		}
	})
	if stayed[added_] < 20 || stayed[replaced] < 5 || stayed[same] < 5 {
		t.Errorf("blocks that stayed one, by outcome: %v", stayed)
	}
}

// TestABlockThatGrowsBecomesNodes: a block that could not be cut would grow without end.
func TestABlockThatGrowsBecomesNodes(t *testing.T) {
	root, e := Ref(nil), &Edit{ID: 1, Src: &Source{}}
	for _, k := range []string{"a", "b"} {
		if _, err := e.Put(&root, k, nil, true); err != nil {
			t.Fatal(err)
		}
	}
	b := whole(t, root)
	block, ok := NewBlock(b, Word(1, 64, int(BlockSize(len(b)))))
	if !ok {
		t.Fatal("no block")
	}
	for n := byte(0); isBlock(block); n++ {
		if len(encoded(block)) > WholeBlock {
			t.Fatalf("a block of %d bytes", len(encoded(block)))
		}
		e.ID++
		if _, err := e.Put(&block, string([]byte{'b', n})+strings.Repeat("x", 50), nil, true); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Check(&block, e.Src); err != nil || n < 10 {
		t.Fatalf("%d keys when it became nodes: %v", n, err)
	}
}
