package server

import "errors"

// errHangUp closes the connection: a fail point asked for it.
var errHangUp = errors.New("close the connection")

// command is a row of the table of commands.
type command struct {
	name     string
	aliases  []string
	fields   []string // beside the generic ones and the command's own name
	sections []string // that may come as document sequences
	anyField bool     // of the handshake, which must tolerate what it does not know

	public   bool // needs no login
	admin    bool // only on the admin database
	anywhere bool // on any member; others follow the read preference
	write    bool // on the primary only, with a write concern
	takesWC  bool // a write concern is accepted and has nothing to wait for
	read     bool // takes a read concern
	snapshot bool // also the snapshot read concern
	inTxn    bool // may run in a transaction
	endsTxn  bool
	retry    bool // may be a retryable write

	run func(*call) error
}

// reads says whether the command takes a read concern. In a transaction the
// first one does, whatever it is.
func (c *command) reads(k *call) bool { return c.read || k.inTxn }

// commandTable is the list of all commands. One file per command holds what
// stands in run.
func commandTable() []*command {
	return []*command{
		// Handshake and diagnosis.
		{name: "hello", aliases: []string{"isMaster", "ismaster"}, public: true, anyField: true, anywhere: true, run: cmdHello},
		{name: "ping", public: true, anywhere: true, run: func(*call) error { return nil }},
		{name: "saslStart", fields: []string{"mechanism", "payload", "options", "autoAuthorize"}, public: true, anywhere: true, run: cmdSaslStart},
		{name: "saslContinue", fields: []string{"conversationId", "payload"}, public: true, anywhere: true, run: cmdSaslContinue},
		{name: "logout", public: true, anywhere: true, run: cmdLogout},
		{name: "buildInfo", aliases: []string{"buildinfo"}, anywhere: true, run: cmdBuildInfo},
		{name: "getParameter", fields: []string{"*", "allParameters", "featureCompatibilityVersion", "enableTestCommands", "authenticationMechanisms", "requireApiVersion", "transactionLifetimeLimitSeconds", "acceptApiVersion2", "mongodbServerVersion"}, admin: true, anywhere: true, run: cmdGetParameter},
		{name: "setParameter", fields: []string{"transactionLifetimeLimitSeconds", "maxTransactionLockRequestTimeoutMillis"}, admin: true, anywhere: true, run: cmdSetParameter},
		{name: "connectionStatus", fields: []string{"showPrivileges"}, anywhere: true, run: cmdConnectionStatus},
		{name: "whatsmyuri", anywhere: true, run: cmdWhatsMyURI},
		{name: "serverStatus", anyField: true, anywhere: true, run: cmdServerStatus},
		{name: "hostInfo", admin: true, anywhere: true, run: cmdHostInfo},
		{name: "getCmdLineOpts", admin: true, anywhere: true, run: cmdGetCmdLineOpts},
		{name: "getLog", admin: true, anywhere: true, run: cmdGetLog},
		{name: "listCommands", anywhere: true, run: cmdListCommands},
		{name: "replSetGetStatus", fields: []string{"initialSync"}, admin: true, anywhere: true, run: cmdReplSetGetStatus},
		{name: "replSetGetConfig", fields: []string{"commitmentStatus"}, admin: true, anywhere: true, run: cmdReplSetGetConfig},
		{name: "replSetStepDown", fields: []string{"force", "secondaryCatchUpPeriodSecs"}, admin: true, anywhere: true, run: cmdReplSetStepDown},
		{name: "replSetStepUp", fields: []string{"skipDryRun"}, admin: true, anywhere: true, run: cmdReplSetStepUp},
		{name: "replSetFreeze", admin: true, anywhere: true, run: cmdReplSetFreeze},
		{name: "configureFailPoint", fields: []string{"mode", "data"}, admin: true, anywhere: true, run: cmdConfigureFailPoint},

		// Sessions and transactions.
		{name: "startSession", anywhere: true, run: cmdStartSession},
		{name: "endSessions", anywhere: true, run: cmdEndSessions},
		{name: "refreshSessions", anywhere: true, run: cmdRefreshSessions},
		{name: "killSessions", anywhere: true, run: cmdEndSessions},
		{name: "killAllSessions", anywhere: true, run: cmdKillAllSessions},
		{name: "commitTransaction", fields: []string{"recoveryToken"}, admin: true, endsTxn: true, inTxn: true, retry: true, run: cmdCommitTransaction},
		{name: "abortTransaction", fields: []string{"recoveryToken"}, admin: true, endsTxn: true, inTxn: true, retry: true, run: cmdAbortTransaction},

		// Documents.
		{name: "insert", fields: []string{"stmtId", "stmtIds", "documents", "ordered", "bypassDocumentValidation"}, sections: []string{"documents"}, write: true, inTxn: true, retry: true, run: cmdInsert},
		{name: "update", fields: []string{"stmtId", "stmtIds", "updates", "ordered", "bypassDocumentValidation", "let"}, sections: []string{"updates"}, write: true, inTxn: true, retry: true, run: cmdUpdate},
		{name: "delete", fields: []string{"stmtId", "stmtIds", "deletes", "ordered", "let"}, sections: []string{"deletes"}, write: true, inTxn: true, retry: true, run: cmdDelete},
		{name: "findAndModify", aliases: []string{"findandmodify"}, fields: []string{"stmtId", "query", "sort", "remove", "update", "new", "fields", "upsert", "bypassDocumentValidation", "collation", "arrayFilters", "hint", "let"}, write: true, inTxn: true, retry: true, run: cmdFindAndModify},
		{name: "find", fields: findFields, read: true, snapshot: true, inTxn: true, run: cmdFind},
		{name: "getMore", fields: []string{"collection", "batchSize"}, anywhere: true, inTxn: true, run: cmdGetMore},
		{name: "killCursors", fields: []string{"cursors"}, anywhere: true, inTxn: true, run: cmdKillCursors},
		{name: "count", fields: []string{"query", "limit", "skip", "hint", "collation", "fields"}, read: true, run: cmdCount},
		{name: "distinct", fields: []string{"key", "query", "collation", "hint"}, read: true, snapshot: true, inTxn: true, run: cmdDistinct},
		{name: "aggregate", fields: []string{"pipeline", "explain", "allowDiskUse", "cursor", "bypassDocumentValidation", "collation", "hint", "let"}, read: true, snapshot: true, takesWC: true, inTxn: true, run: cmdAggregate},
		{name: "explain", fields: []string{"verbosity"}, read: true, run: cmdExplain},

		// Collections, indexes, databases.
		{name: "create", fields: createFields, write: true, inTxn: true, run: cmdCreate},
		{name: "collMod", fields: append([]string{"index"}, optionFields...), write: true, run: cmdCollMod},
		{name: "drop", write: true, run: cmdDrop},
		{name: "dropDatabase", write: true, run: cmdDropDatabase},
		{name: "renameCollection", fields: []string{"to", "dropTarget"}, admin: true, write: true, run: cmdRenameCollection},
		{name: "listCollections", fields: []string{"filter", "nameOnly", "authorizedCollections", "cursor"}, run: cmdListCollections},
		{name: "listDatabases", fields: []string{"filter", "nameOnly", "authorizedDatabases"}, admin: true, run: cmdListDatabases},
		{name: "createIndexes", fields: []string{"indexes", "commitQuorum"}, sections: []string{"indexes"}, write: true, inTxn: true, run: cmdCreateIndexes},
		{name: "dropIndexes", aliases: []string{"deleteIndexes"}, fields: []string{"index"}, write: true, run: cmdDropIndexes},
		{name: "listIndexes", fields: []string{"cursor"}, run: cmdListIndexes},
		{name: "collStats", fields: []string{"scale"}, run: cmdCollStats},
		{name: "dbStats", aliases: []string{"dbstats"}, fields: []string{"scale", "freeStorage"}, run: cmdDBStats},
		{name: "validate", fields: []string{"full"}, run: cmdValidate},
	}
}
