package server

func cmdInsert(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	k.boolean("bypassDocumentValidation", false)
	docs, err := k.documents("documents")
	if err != nil {
		return err
	}
	vars, err := k.vars(nil, nil)
	if err != nil {
		return err
	}
	n := int32(0)
	out, err := k.statements(len(docs), func(b *batch, i int, id int32) (document, error) {
		return b.statement(id, func() (document, error) {
			_, err := b.insert(ns, docs[i], vars)
			return emptyDoc, err
		})
	}, func(int, document) { n++ })
	if err != nil {
		return err
	}
	k.out.AppendInt32("n", n)
	out.append(k.out)
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
