package member

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// PackedTLS is the part of a tls.Config that can be sent to another process.
type PackedTLS struct {
	Certificates           []packedCertificate
	MinVersion, MaxVersion uint16
}

type packedCertificate struct {
	Chain [][]byte // DER
	Key   []byte   // PKCS 8
}

// PackTLS refuses what it cannot carry and a server would miss.
func PackTLS(c *tls.Config) (*PackedTLS, error) {
	if c.GetCertificate != nil || c.GetConfigForClient != nil || c.ClientAuth != tls.NoClientCert || c.ClientCAs != nil ||
		c.VerifyPeerCertificate != nil || c.VerifyConnection != nil || c.CipherSuites != nil || c.CurvePreferences != nil || c.NextProtos != nil {
		return nil, errors.New("only Certificates, MinVersion and MaxVersion can be sent to a process")
	}
	p := &PackedTLS{MinVersion: c.MinVersion, MaxVersion: c.MaxVersion}
	for _, cert := range c.Certificates {
		key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("a private key cannot be sent to a process: %w", err)
		}
		p.Certificates = append(p.Certificates, packedCertificate{Chain: cert.Certificate, Key: key})
	}
	return p, nil
}

func (p *PackedTLS) unpack() (*tls.Config, error) {
	c := &tls.Config{MinVersion: p.MinVersion, MaxVersion: p.MaxVersion}
	for _, cert := range p.Certificates {
		key, err := x509.ParsePKCS8PrivateKey(cert.Key)
		if err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		c.Certificates = append(c.Certificates, tls.Certificate{Certificate: cert.Chain, PrivateKey: key})
	}
	return c, nil
}
