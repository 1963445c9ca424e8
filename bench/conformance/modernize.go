package main

import "encoding/json"

// fields is a JSON object whose values stay as they were written: the order of the
// keys in a document matters.
type fields map[string]json.RawMessage

// modernize turns a file of the first format, with one operation for each test and
// the result beside the outcome, into one of the second, which the driver has a
// runner for. Other files stay as they are.
func modernize(b []byte) ([]byte, error) {
	var file fields
	var tests []fields
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(file["tests"], &tests); err != nil {
		return nil, err
	}
	changed := false
	for _, t := range tests {
		if t["operation"] == nil || t["operations"] != nil {
			continue
		}
		changed = true
		if err := modernizeTest(t); err != nil {
			return nil, err
		}
	}
	if !changed {
		return b, nil
	}
	for _, name := range []string{"database_name", "collection_name"} {
		if file[name] == nil {
			file[name] = json.RawMessage(`"conformance"`)
		}
	}
	return marshal(file, "tests", tests)
}

func modernizeTest(t fields) error {
	var op, outcome, result fields
	if err := json.Unmarshal(t["operation"], &op); err != nil {
		return err
	}
	if err := json.Unmarshal(t["outcome"], &outcome); err != nil {
		return err
	}
	fails := string(outcome["error"]) == "true"
	if fails {
		op["error"] = outcome["error"]
	}
	// The second format has either what an operation gives or how it fails.
	labels := json.Unmarshal(outcome["result"], &result) == nil && (result["errorLabelsContain"] != nil || result["errorLabelsOmit"] != nil)
	if labels || !fails {
		op["result"] = outcome["result"]
	}
	if op["result"] == nil {
		delete(op, "result")
	}
	one, err := json.Marshal(op)
	if err != nil {
		return err
	}
	t["operations"] = json.RawMessage("[" + string(one) + "]")
	delete(t, "operation")
	delete(outcome, "error")
	delete(outcome, "result")
	if outcome["collection"] == nil {
		delete(t, "outcome")
		return nil
	}
	_, err = marshal(t, "outcome", outcome)
	return err
}

// marshal puts a value into an object and writes the object.
func marshal(o fields, name string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	o[name] = b
	return json.Marshal(o)
}
