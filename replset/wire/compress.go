package wire

import (
	"bytes"
	"compress/zlib"

	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Compressors are the names of those that a peer may choose from.
func Compressors() []string { return []string{"snappy", "zstd", "zlib"} }

// unpack decompresses to size bytes, which is within the limit of a message, or
// fails. A few bytes must not become many: the driver's own decompressor lets zstd
// grow far beyond the size that was told, and takes that size's memory for zlib before
// it has seen the data.
func unpack(b []byte, id wiremessage.CompressorID, size int32) ([]byte, error) {
	switch id {
	case wiremessage.CompressorZstd:
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(size, leastWindow))))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return d.DecodeAll(b, nil)
	case wiremessage.CompressorZLib:
		r, err := zlib.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return readFull(r, int(size))
	}
	return driver.DecompressPayload(b, driver.CompressionOpts{Compressor: id, UncompressedSize: size})
}

// leastWindow is the window that a decoder must have whatever the size of what it
// decodes: RFC 8878, section 3.1.1.1.2.
const leastWindow = 8 << 20
