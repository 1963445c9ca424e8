package store

import "testing"

// Who reads at an earlier timestamp must be told when what had the name then is gone.
func TestTheCatalogueKnowsWhatHadANameWhen(t *testing.T) {
	s := open(t)
	named := func(id uint32, name string) *Effects { return &Effects{Put: []*Collection{{ID: id, Name: name}}} }
	apply(t, s, 10, named(1, "db.first"))
	apply(t, s, 20, named(2, "db.c"))
	apply(t, s, 30, &Effects{Drop: []uint32{2}})
	apply(t, s, 40, named(3, "db.c"))
	apply(t, s, 50, named(3, "db.d")) // renamed
	apply(t, s, 60, named(3, "db.d")) // changed, name kept
	cat := s.Catalogue()
	for _, c := range []struct {
		name  string
		at    uint64
		want  uint32 // 0 is none
		known bool
	}{
		{"db.first", 10, 1, true}, {"db.first", 60, 1, true}, {"db.first", 9, 0, false},
		{"db.c", 10, 0, false}, {"db.c", 25, 0, false}, {"db.c", 45, 0, false}, {"db.c", 50, 0, true}, {"db.c", 60, 0, true},
		{"db.d", 49, 0, true}, {"db.d", 50, 3, true}, {"db.d", 60, 3, true},
		{"db.never", 10, 0, true},
	} {
		got, known := cat.At(c.name, c.at)
		if known != c.known || (got == nil) != (c.want == 0) || got != nil && got.ID != c.want {
			t.Errorf("%s at %d: %v, %v", c.name, c.at, got, known)
		}
	}
	if !s.Dropped(2, 29) || s.Dropped(2, 30) || s.Dropped(3, 60) {
		t.Error("the wrong collections count as dropped")
	}
	again, err := New(s.db)
	if err != nil {
		t.Fatal(err)
	}
	again.Visible(60)
	if _, known := again.Catalogue().At("db.c", 25); known {
		t.Error("after a restart a name that was given up before counts as known")
	}
	if c, known := again.Catalogue().At("db.d", 55); !known || c == nil {
		t.Error("after a restart a collection that kept its name is not found")
	}
}
