package server

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/wire"
)

// version is the server version whose behaviour this package follows.
const version = "7.0.14"

func versionArray() bsoncore.Array {
	return bsoncore.NewArrayBuilder().AppendInt32(7).AppendInt32(0).AppendInt32(14).AppendInt32(0).Build()
}

func emptyArray() bsoncore.Array { return bsoncore.NewArrayBuilder().Build() }

func cmdBuildInfo(k *call) error {
	k.out.AppendString("version", version).AppendString("gitVersion", "assay").AppendArray("modules", emptyArray()).
		AppendArray("versionArray", versionArray()).AppendInt32("bits", 64).AppendBoolean("debug", false).
		AppendInt32("maxBsonObjectSize", wire.MaxDocumentSize).AppendArray("storageEngines", textArray([]string{"pebble"}))
	return nil
}

func cmdGetParameter(k *call) error {
	all := k.boolean("allParameters", false) || value.Str(k.get(k.name)) == "*"
	n := 0
	show := func(name string, add func()) {
		if all || k.has(name) {
			add()
			n++
		}
	}
	show("featureCompatibilityVersion", func() {
		k.out.AppendDocument("featureCompatibilityVersion", newDoc().AppendString("version", "7.0").Build())
	})
	show("enableTestCommands", func() { k.out.AppendBoolean("enableTestCommands", true) })
	show("authenticationMechanisms", func() { k.out.AppendArray("authenticationMechanisms", textArray([]string{mechanism})) })
	show("requireApiVersion", func() { k.out.AppendBoolean("requireApiVersion", false) })
	show("transactionLifetimeLimitSeconds", func() {
		k.out.AppendInt32("transactionLifetimeLimitSeconds", int32(k.s.o.TransactionLifetime.Seconds()))
	})
	if n == 0 {
		return errorf(codeInvalidOptions, "no option found to get")
	}
	return k.err
}

func cmdSetParameter(k *call) error {
	return errorf(codeNotImplemented, "parameters are set by the options of the set, before it starts")
}

func cmdConnectionStatus(k *call) error {
	users := emptyArray()
	if k.conn.user != "" {
		users = bsoncore.NewArrayBuilder().AppendDocument(newDoc().AppendString("user", k.conn.user).AppendString("db", "admin").Build()).Build()
	}
	auth := newDoc().AppendArray("authenticatedUsers", users).AppendArray("authenticatedUserRoles", emptyArray())
	if k.boolean("showPrivileges", false) {
		auth.AppendArray("authenticatedUserPrivileges", emptyArray())
	}
	k.out.AppendDocument("authInfo", auth.Build())
	return k.err
}

func cmdWhatsMyURI(k *call) error {
	k.out.AppendString("you", k.conn.peer)
	return nil
}

func cmdServerStatus(k *call) error {
	s := k.s
	s.mu.Lock()
	conns := len(s.conns)
	counters := newDoc()
	for _, name := range []string{"insert", "find", "update", "delete", "getMore", "findAndModify", "aggregate"} {
		counters.AppendInt64(name, s.counters[name])
	}
	s.mu.Unlock()
	role := s.topology.role()
	host, _ := os.Hostname()
	up := time.Since(s.started)
	repl := newDoc().AppendString("setName", s.m.SetName).AppendBoolean("isWritablePrimary", role.Writable).AppendBoolean("secondary", !role.Writable).
		AppendArray("hosts", textArray(s.m.Hosts)).AppendString("me", s.m.Hosts[s.m.Self]).Build()
	k.out.AppendString("host", host).AppendString("version", version).AppendString("process", "mongod").
		AppendInt64("pid", int64(os.Getpid())).AppendDouble("uptime", up.Seconds()).AppendInt64("uptimeMillis", up.Milliseconds()).
		AppendDateTime("localTime", time.Now().UnixMilli()).
		AppendDocument("connections", newDoc().AppendInt32("current", int32(conns)).Build()).
		AppendDocument("opcounters", counters.Build()).AppendDocument("repl", repl).
		AppendDocument("storageEngine", newDoc().AppendString("name", "pebble").AppendBoolean("supportsCommittedReads", true).AppendBoolean("persistent", true).Build())
	return nil
}

func cmdHostInfo(k *call) error {
	host, _ := os.Hostname()
	k.out.AppendDocument("system", newDoc().AppendString("hostname", host).AppendInt32("numCores", int32(runtime.NumCPU())).AppendString("cpuArch", runtime.GOARCH).Build()).
		AppendDocument("os", newDoc().AppendString("type", runtime.GOOS).Build())
	return nil
}

func cmdGetCmdLineOpts(k *call) error {
	k.out.AppendArray("argv", emptyArray()).AppendDocument("parsed", emptyDoc)
	return nil
}

func cmdGetLog(k *call) error {
	k.out.AppendInt32("totalLinesWritten", 0).AppendArray("log", emptyArray())
	return nil
}

func cmdListCommands(k *call) error {
	names := make([]string, 0, len(k.s.commands))
	for name, c := range k.s.commands {
		if name == c.name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	list := newDoc()
	for _, name := range names {
		c := k.s.commands[name]
		list.AppendDocument(name, newDoc().AppendBoolean("requiresAuth", !c.public).AppendBoolean("secondaryOk", c.anywhere).AppendBoolean("adminOnly", c.admin).Build())
	}
	k.out.AppendDocument("commands", list.Build())
	return nil
}

func cmdReplSetGetStatus(k *call) error {
	s := k.s
	role := s.topology.role()
	at := timestamp(s.m.Store.Stamp())
	op := newDoc().AppendTimestamp("ts", at.T, at.I).AppendInt64("t", int64(role.Term)).Build()
	var members []document
	for i, host := range s.m.Hosts {
		state, name := int32(2), "SECONDARY"
		if i == role.Primary && (i != s.m.Self || role.Writable) {
			state, name = 1, "PRIMARY"
		}
		m := newDoc().AppendInt32("_id", int32(i)).AppendString("name", host).AppendDouble("health", 1).AppendInt32("state", state).AppendString("stateStr", name)
		if i == s.m.Self {
			m.AppendDocument("optime", op).AppendBoolean("self", true)
		}
		members = append(members, m.Build())
	}
	mine := int32(2)
	if role.Writable {
		mine = 1
	}
	k.out.AppendString("set", s.m.SetName).AppendDateTime("date", time.Now().UnixMilli()).AppendInt32("myState", mine).AppendInt64("term", int64(role.Term)).
		AppendInt64("heartbeatIntervalMillis", s.o.HeartbeatMillis).AppendInt32("majorityVoteCount", int32(len(s.m.Hosts)/2+1)).
		AppendDocument("optimes", newDoc().AppendDocument("lastCommittedOpTime", op).AppendDocument("appliedOpTime", op).AppendDocument("durableOpTime", op).Build())
	appendArray(k.out, "members", members)
	return nil
}

func cmdReplSetGetConfig(k *call) error {
	s := k.s
	var members []document
	for i, host := range s.m.Hosts {
		members = append(members, newDoc().AppendInt32("_id", int32(i)).AppendString("host", host).AppendBoolean("arbiterOnly", false).
			AppendBoolean("hidden", false).AppendDouble("priority", 1).AppendInt32("votes", 1).Build())
	}
	config := newDoc().AppendString("_id", s.m.SetName).AppendInt32("version", 1).AppendInt64("term", int64(s.topology.role().Term)).AppendInt64("protocolVersion", 1)
	appendArray(config, "members", members)
	config.AppendDocument("settings", newDoc().AppendInt64("heartbeatIntervalMillis", s.o.HeartbeatMillis).AppendInt64("electionTimeoutMillis", s.o.ElectionMillis).Build())
	k.out.AppendDocument("config", config.Build())
	return nil
}

func cmdReplSetStepDown(k *call) error {
	seconds := k.count(k.name, 60)
	k.boolean("force", false)
	catchUp := k.count("secondaryCatchUpPeriodSecs", 10)
	if k.err != nil {
		return k.err
	}
	if !k.role.Writable {
		return errorf(codeNotPrimary, "not primary so can't step down")
	}
	if catchUp > seconds && k.has("secondaryCatchUpPeriodSecs") {
		return errorf(codeBadValue, "secondaryCatchUpPeriodSecs must be less than or equal to the stepdown period")
	}
	ctx, cancel := deadline(k.ctx, 1000*max(1, catchUp))
	defer cancel()
	err := k.s.m.StepDown(ctx)
	if errors.Is(err, context.DeadlineExceeded) && k.ctx.Err() == nil {
		return errorf(codeExceededTimeLimit, "No electable secondaries caught up as of %s", time.Now().Format(time.RFC3339))
	}
	return err
}

func cmdReplSetStepUp(k *call) error {
	return k.s.m.StepUp(k.ctx)
}

// cmdReplSetFreeze thaws; freezing, which would keep a member from standing for
// election, is not to be had.
func cmdReplSetFreeze(k *call) error {
	seconds := k.integer(k.name, 0)
	if k.err != nil {
		return k.err
	}
	if k.role.Writable {
		return errorf(95, "cannot freeze node when primary or running for election. state: Primary")
	}
	if seconds != 0 {
		return errorf(codeNotImplemented, "replSetFreeze takes only 0 here")
	}
	k.out.AppendString("info", "unfreezing")
	return nil
}
