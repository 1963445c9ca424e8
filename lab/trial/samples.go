package trial

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func (r *report) samples(line []byte) {
	var in struct {
		Samples string  `json:"samples"`
		File    string  `json:"file"`
		Values  []int64 `json:"values"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		r.spoil(in.Samples, fmt.Errorf("%v (they are whole numbers, for instance nanoseconds)", err))
		return
	}
	if in.File != "" {
		path := in.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.dir, path)
		}
		v, err := readSamples(path)
		if err != nil {
			r.spoil(in.Samples, err)
			return
		}
		in.Values = append(in.Values, v...)
	}
	r.keep(in.Samples, in.Values)
}

// keep adds samples to those of the same name.
func (r *report) keep(name string, v []int64) {
	if r.obs.Bulk == nil {
		r.obs.Bulk = map[string][]int64{}
	}
	total := len(v)
	for _, s := range r.obs.Bulk {
		total += len(s)
	}
	_, known := r.obs.Bulk[name]
	switch at := slices.IndexFunc(v, func(x int64) bool { return x < 0 }); {
	case name == "" || len(name) > maxName:
		r.spoil(name, fmt.Errorf("no name, or one of more than %d bytes", maxName))
	case at >= 0:
		r.spoil(name, fmt.Errorf("negative value %d", v[at]))
	case total > MaxSamples:
		r.spoil(name, fmt.Errorf("more than %d, all names together", MaxSamples))
	case !known && len(r.obs.Bulk) >= maxSets:
		r.spoil(name, fmt.Errorf("more than %d names", maxSets))
	default:
		r.obs.Bulk[name] = append(r.obs.Bulk[name], v...)
	}
}

// spoil makes all samples of a name count as missing: part of a distribution
// is another distribution.
func (r *report) spoil(name string, why error) {
	r.bad[name] = true
	delete(r.obs.Bulk, name)
	r.note("samples %q: %v; they count as missing", clip(name, maxName), why)
}

func readSamples(path string) ([]int64, error) {
	f, info, err := openRegular(path, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > MaxSamples*21 {
		return nil, fmt.Errorf("%s has %d bytes; at most %d samples are kept", path, info.Size(), MaxSamples)
	}
	if strings.HasSuffix(path, ".i64") {
		switch {
		case info.Size()%8 != 0:
			return nil, fmt.Errorf("%s has %d bytes, not a multiple of 8", path, info.Size())
		case info.Size() > MaxSamples*8:
			return nil, fmt.Errorf("%s has %d samples; at most %d are kept", path, info.Size()/8, MaxSamples)
		}
		b := make([]byte, info.Size())
		if _, err := io.ReadFull(f, b); err != nil {
			return nil, err
		}
		return DecodeSamples(b), nil
	}
	var out []int64
	words := bufio.NewScanner(f)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		v, err := strconv.ParseInt(words.Text(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: value %d is %q, not a whole number", path, len(out)+1, cutBytes(words.Bytes(), 30))
		}
		if out = append(out, v); len(out) > MaxSamples {
			return nil, fmt.Errorf("%s has more than %d samples", path, MaxSamples)
		}
	}
	return out, words.Err()
}

// openRegular opens a file that an arm or a judge made, without waiting for
// anybody: it may be a pipe.
func openRegular(path string, flags int) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// EncodeSamples writes samples as little-endian 64-bit integers.
func EncodeSamples(s []int64) []byte {
	b := make([]byte, 0, 8*len(s))
	for _, v := range s {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// DecodeSamples reads what EncodeSamples wrote. The length must be a multiple
// of 8; what is left over is ignored.
func DecodeSamples(b []byte) []int64 {
	out := make([]int64, len(b)/8)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}
