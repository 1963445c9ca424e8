package replset_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset"
)

type refusal struct {
	want int32
	cmd  bson.D
}

// on is a command on the collection c, with more fields.
func on(name string, more ...bson.E) bson.D { return append(bson.D{{Key: name, Value: "c"}}, more...) }

func field(name string, v any) bson.E { return bson.E{Key: name, Value: v} }

func filtered(op string, arg any) bson.D {
	return on("find", field("filter", bson.D{{Key: op, Value: arg}}))
}

func staged(stages ...any) bson.D {
	return on("aggregate", field("pipeline", append(bson.A{}, stages...)), field("cursor", bson.M{}))
}

func computed(x any) bson.D { return staged(bson.M{"$project": bson.M{"x": x}}) }

func updated(u any, more ...bson.E) bson.D {
	return on("update", field("updates", bson.A{append(bson.D{{Key: "q", Value: bson.M{}}, {Key: "u", Value: u}}, more...)}))
}

// samples is one command of each kind that is well formed, so that a refusal is of what
// is added to it and of nothing else.
func samples() map[string]bson.D {
	return map[string]bson.D{
		"insert": on("insert", field("documents", bson.A{bson.M{}})), "update": updated(bson.M{"$set": bson.M{"x": 1}}),
		"delete":        on("delete", field("deletes", bson.A{bson.M{"q": bson.M{}, "limit": 0}})),
		"findAndModify": on("findAndModify", field("remove", true)), "find": on("find"), "count": on("count"),
		"distinct": on("distinct", field("key", "x")), "aggregate": staged(), "explain": {{Key: "explain", Value: on("find")}},
		"create": {{Key: "create", Value: "new"}}, "collMod": on("collMod"), "drop": {{Key: "drop", Value: "old"}}, "dropDatabase": {{Key: "dropDatabase", Value: 1}, {Key: "$db", Value: "other"}},
		"createIndexes": on("createIndexes", field("indexes", bson.A{bson.M{"key": bson.M{"x": 1}, "name": "x"}})),
		"dropIndexes":   on("dropIndexes", field("index", "*")), "listIndexes": on("listIndexes"),
		"listCollections": {{Key: "listCollections", Value: 1}}, "listDatabases": {{Key: "listDatabases", Value: 1}, {Key: "$db", Value: "admin"}},
		"getMore": {{Key: "getMore", Value: int64(1)}, {Key: "collection", Value: "c"}}, "killCursors": on("killCursors", field("cursors", bson.A{})),
		"collStats": on("collStats"), "dbStats": {{Key: "dbStats", Value: 1}}, "validate": on("validate"), "ping": {{Key: "ping", Value: 1}},
		"endSessions": {{Key: "endSessions", Value: bson.A{}}}, "replSetGetStatus": {{Key: "replSetGetStatus", Value: 1}, {Key: "$db", Value: "admin"}},
	}
}

// with puts a field before $db, which comes last.
func with(cmd bson.D, more ...bson.E) bson.D {
	out := bson.D{}
	for _, e := range cmd {
		if e.Key != "$db" {
			out = append(out, e)
		}
	}
	out = append(out, more...)
	for _, e := range cmd {
		if e.Key == "$db" {
			out = append(out, e)
		}
	}
	return out
}

func TestUnsupportedCommandsStagesOperatorsAndOptionsAreRefused(t *testing.T) {
	s := replset.Start(t, replset.Options{Members: 1})
	uri := s.MemberURI(0)
	if got := raw(t, uri, on("insert", field("documents", bson.A{bson.M{"_id": 1, "x": 1, "a": bson.A{1}}}))); got["ok"] != 1.0 {
		t.Fatal(got)
	}
	var list []refusal
	add := func(want int32, cmd bson.D) { list = append(list, refusal{want, cmd}) }

	for _, name := range []string{"eval", "mapReduce", "bulkWrite", "geoSearch", "cloneCollectionAsCapped", "reIndex", "compact", "fsync", "currentOp", "killOp",
		"shutdown", "replSetInitiate", "replSetReconfig", "planCacheClear", "profile", "createUser", "grantRolesToUser", "no"} {
		if name != "createUser" && name != "shutdown" { // which exist where there are users
			add(59, bson.D{{Key: name, Value: 1}})
		}
	}
	for name, cmd := range samples() {
		// A field that no command has, and one that only others have.
		add(40415, with(cmd, field("no", 1)))
		if name != "explain" {
			add(40415, with(cmd, field("startIndex", true)))
		}
		if name != "hello" {
			add(40415, with(cmd, field("$readPrefrence", bson.M{})))
		}
	}
	for _, option := range []string{"returnKey", "showRecordId", "tailable", "awaitData"} {
		add(238, on("find", field(option, true)))
	}
	for _, option := range []bson.E{field("capped", true), field("timeseries", bson.M{"timeField": "t"}), field("clusteredIndex", bson.M{"key": bson.M{"_id": 1}}),
		field("storageEngine", bson.M{"x": 1}), field("expireAfterSeconds", 5), field("encryptedFields", bson.M{"x": 1}),
		field("collation", bson.M{"locale": "de"}), field("indexOptionDefaults", bson.M{"x": 1})} {
		add(238, with(samples()["create"], option))
	}
	for _, index := range []bson.M{
		{"key": bson.M{"x": "text"}, "name": "i"}, {"key": bson.M{"x": "2dsphere"}, "name": "i"}, {"key": bson.M{"x": "hashed"}, "name": "i"},
		{"key": bson.M{"$**": 1}, "name": "i"}, {"key": bson.M{"x": 1}, "name": "i", "collation": bson.M{"locale": "de"}},
		{"key": bson.M{"x": 1}, "name": "i", "hidden": true},
	} {
		add(238, on("createIndexes", field("indexes", bson.A{index})))
	}
	add(197, on("createIndexes", field("indexes", bson.A{bson.M{"key": bson.M{"x": 1}, "name": "i", "uniqe": true}})))
	add(40415, updated(bson.M{"$set": bson.M{"x": 1}}, field("arayFilters", bson.A{})))
	add(40415, on("delete", field("deletes", bson.A{bson.M{"q": bson.M{}, "limit": 0, "sort": bson.M{}}})))
	add(238, on("collMod", field("index", bson.M{"name": "x_1", "hidden": true})))

	for _, op := range []string{"$where", "$text"} {
		add(238, filtered(op, "x"))
	}
	for _, op := range []string{"$geoWithin", "$near", "$geoIntersects", "$nearSphere"} {
		add(238, filtered("loc", bson.M{op: bson.M{}}))
	}
	add(2, filtered("$no", 1))
	add(2, filtered("x", bson.M{"$no": 1}))
	add(9, filtered("$jsonSchema", bson.M{"no": 1}))
	add(238, filtered("$jsonSchema", bson.M{"patternProperties": bson.M{}}))

	for _, stage := range []string{"$geoNear", "$graphLookup", "$bucketAuto", "$densify", "$fill", "$redact", "$setWindowFields", "$indexStats", "$collStats",
		"$currentOp", "$planCacheStats", "$search", "$vectorSearch"} {
		add(238, staged(bson.M{stage: bson.M{}}))
	}
	add(40324, staged(bson.M{"$no": bson.M{}}))
	add(40324, staged(bson.M{"$facet": bson.M{"f": bson.A{bson.M{"$no": 1}}}}))
	add(40324, updated(bson.A{bson.M{"$no": 1}}))
	add(40415, with(staged(), field("alowDiskUse", true)))

	add(168, computed(bson.M{"$no": 1}))
	for _, op := range []string{"$function", "$accumulator"} {
		add(238, computed(bson.M{op: bson.M{}}))
	}
	add(15952, staged(bson.M{"$group": bson.M{"_id": 1, "x": bson.M{"$no": 1}}}))
	add(9, updated(bson.M{"$no": bson.M{"x": 1}}))
	add(2, updated(bson.M{"$push": bson.M{"a": bson.M{"$each": bson.A{}, "$no": 1}}}))

	for field1, want := range map[string]int32{"strength": 238, "alternate": 238, "backwards": 238, "normalization": 238, "caseFirst": 238, "maxVariable": 238, "no": 40415} {
		v := map[string]any{"strength": 4, "alternate": "shifted", "backwards": true, "normalization": true, "caseFirst": "upper", "maxVariable": "space"}[field1]
		add(want, on("find", field("collation", bson.D{{Key: "locale", Value: "en"}, {Key: field1, Value: v}})))
	}
	add(2, on("find", field("collation", bson.M{"locale": "no_such"})))
	add(40415, on("find", field("readConcern", bson.M{"levle": "local"})))
	add(9, on("find", field("readConcern", bson.M{"level": "eventual"})))
	add(72, bson.D{{Key: "ping", Value: 1}, field("readConcern", bson.M{"level": "majority"})})
	add(40415, with(samples()["insert"], field("writeConcern", bson.M{"tmeout": 1})))
	add(72, on("find", field("writeConcern", bson.M{"w": 1})))
	add(13, bson.D{{Key: "replSetGetStatus", Value: 1}})
	add(73, bson.D{{Key: "insert", Value: "a$b"}, field("documents", bson.A{bson.M{}})})
	for _, name := range []string{"allChangesForCluster", "resumeAftr"} {
		add(map[string]int32{"allChangesForCluster": 72, "resumeAftr": 40415}[name], staged(bson.M{"$changeStream": bson.M{name: true}}))
	}
	for _, r := range list {
		got := raw(t, uri, r.cmd)
		if list, ok := got["writeErrors"].(bson.A); ok { // a statement's refusal
			got["code"] = firstCode(list)
		}
		if got["code"] != r.want {
			t.Errorf("%v gave %v, want code %d", r.cmd, brief(got), r.want)
		}
	}
	t.Logf("%d commands were refused", len(list))
}

func firstCode(writeErrors bson.A) any {
	for _, e := range writeErrors[0].(bson.D) {
		if e.Key == "code" {
			return e.Value
		}
	}
	return nil
}

func brief(reply bson.M) string {
	if reply["errmsg"] != nil {
		return fmt.Sprintf("%v %v", reply["code"], reply["errmsg"])
	}
	if reply["writeErrors"] != nil {
		return fmt.Sprint(reply["writeErrors"])
	}
	return fmt.Sprint(reply)
}

// The samples themselves are taken, or the refusals above would prove nothing.
func TestWhatTheRefusalsAreMadeFromIsSupported(t *testing.T) {
	s := replset.Start(t, replset.Options{Members: 1})
	if got := raw(t, s.MemberURI(0), on("insert", field("documents", bson.A{bson.M{"_id": 1}}))); got["ok"] != 1.0 {
		t.Fatal(got)
	}
	for name, cmd := range samples() {
		if got := raw(t, s.MemberURI(0), cmd); got["ok"] != 1.0 && name != "getMore" {
			t.Errorf("%v gave %s", cmd, brief(got))
		}
	}
}
