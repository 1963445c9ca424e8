package query_test

import (
	"strings"
	"testing"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// The pair that a compare-and-swap is made of, on a document of 450 bytes.
func benchDoc(b *testing.B) query.Document {
	return doc(b, `{"_id": {"$oid": "000000000000000000000007"}, "v": 5, "name": "n", "tags": ["a", "b"], "at": {"$date": "2026-01-01T00:00:00Z"}, "pad": "`+strings.Repeat("x", 330)+`"}`)
}

func BenchmarkMatch(b *testing.B) {
	d := benchDoc(b)
	f := filter(b, `{"_id": {"$oid": "000000000000000000000007"}, "v": 5}`)
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := f.Match(d); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkMatchIn(b *testing.B) {
	d := benchDoc(b)
	f := filter(b, `{"v": {"$in": [1, 2, 3, 4, 5]}, "tags": "b"}`)
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := f.Match(d); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkParseFilter(b *testing.B) {
	f := doc(b, `{"_id": {"$oid": "000000000000000000000007"}, "v": 5}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := query.ParseFilter(f, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func benchUpdate(b *testing.B, u query.Value) {
	d := benchDoc(b)
	b.ReportAllocs()
	for b.Loop() {
		up, err := query.ParseUpdate(u, query.UpdateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, modified, err := up.Apply(d, query.ApplyInput{}); err != nil || !modified {
			b.Fatal(modified, err)
		}
	}
}

func BenchmarkReplace(b *testing.B) {
	u := val(b, `{"_id": {"$oid": "000000000000000000000007"}, "v": 6, "name": "n", "tags": ["a", "b"], "pad": "`+strings.Repeat("x", 330)+`"}`)
	benchUpdate(b, u)
}

func BenchmarkSetInc(b *testing.B) {
	benchUpdate(b, val(b, `{"$set": {"name": "m"}, "$inc": {"v": 1}}`))
}

func BenchmarkKeyOf(b *testing.B) {
	v := val(b, `{"$oid": "000000000000000000000007"}`)
	b.ReportAllocs()
	for b.Loop() {
		value.KeyOf(v)
	}
}

func BenchmarkIndexKeys(b *testing.B) {
	d := benchDoc(b)
	p := pattern(b, `{"name": 1, "v": -1}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.Keys(d); err != nil {
			b.Fatal(err)
		}
	}
}
