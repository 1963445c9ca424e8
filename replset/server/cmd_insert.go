package server

func cmdInsert(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	ordered := k.boolean("ordered", true)
	k.boolean("bypassDocumentValidation", false)
	ids, err := k.stmtIDs()
	if err != nil {
		return err
	}
	docs, err := k.documents("documents")
	if err != nil {
		return err
	}
	vars, err := k.vars(nil)
	if err != nil {
		return err
	}
	b := k.newBatch()
	defer b.close()
	n, again, failed := int32(0), retried{}, &writeErrors{k: k}
	for i, doc := range docs {
		if k.record.done(ids(i)) != nil {
			again = append(again, ids(i))
			n++
			continue
		}
		err := b.run(func() error {
			_, err := b.insert(ns, doc, vars)
			if err == nil {
				k.remember(ids(i), nil)
			}
			return err
		})
		if b.stopped() {
			break
		}
		if err != nil {
			if k.fatal(err) {
				return err
			}
			failed.add(i, err)
			if ordered || k.inTxn {
				break
			}
			continue
		}
		n++
	}
	if !b.stopped() {
		if err := b.flush(); err != nil {
			return err
		}
	}
	k.out.AppendInt32("n", n)
	failed.append(k.out)
	again.append(k.out)
	return nil
}

// documents are the statements of a write command.
func (k *call) documents(name string) ([]document, error) {
	docs, ok := k.req.Documents(name)
	if !ok {
		if k.has(name) {
			return nil, errorf(codeTypeMismatch, "BSON field '%s.%s' is no array of objects", k.name, name)
		}
		return nil, errorf(codeMissingField, "BSON field '%s.%s' is missing but a required field", k.name, name)
	}
	if len(docs) == 0 || len(docs) > maxStatements {
		return nil, errorf(16, "Write batch sizes must be between 1 and %d. Got %d operations.", maxStatements, len(docs))
	}
	return docs, k.err
}

const maxStatements = 100_000

// shapes refuses a command in which any statement has unknown fields or lacks
// one, before the first is executed.
func shapes(what string, docs []document, known []string, required ...string) error {
	for _, d := range docs {
		a := &args{what: what, doc: d}
		if err := a.only(known); err != nil {
			return err
		}
		if a.must(required...); a.err != nil {
			return a.err
		}
	}
	return nil
}
