package server

func cmdInsert(k *call) error {
	n := int32(0)
	out, err := k.statements("documents", nil, func(b *batch, st *statement) (document, error) {
		return b.statement(st.id, func() (document, error) {
			_, err := b.insert(st.ns, st.doc, st.vars)
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
