package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials are what opens the cluster to its administrator: a token and a client certificate.
type credentials struct {
	dir, server, token, kubeconfig string
}

// authority signs the certificates of the server and of the administrator.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func writeCredentials(dir, server string) (*credentials, error) {
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	c := &credentials{dir, server, hex.EncodeToString(random), filepath.Join(dir, "kubeconfig")}
	tokens := []byte(c.token + ",admin,admin,system:masters\n")
	if err := os.WriteFile(filepath.Join(dir, "tokens.csv"), tokens, 0o600); err != nil {
		return nil, err
	}
	if _, err := writeKey(filepath.Join(dir, "accounts.key")); err != nil {
		return nil, err
	}
	if err := writeCertificates(dir); err != nil {
		return nil, err
	}
	return c, c.writeKubeconfig()
}

func writeCertificates(dir string) error {
	root := authority{}
	template := makeTemplate("kubebed", "")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	if err := root.issue(dir, "ca", template); err != nil {
		return err
	}
	template = makeTemplate("kube-apiserver", "")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	if err := root.issue(dir, "server", template); err != nil {
		return err
	}
	template = makeTemplate("certificate-admin", "system:masters")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return root.issue(dir, "client", template)
}

func makeTemplate(name, group string) *x509.Certificate {
	subject := pkix.Name{CommonName: name}
	if group != "" {
		subject.Organization = []string{group}
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(7 * 24 * time.Hour),
	}
}

// issue writes NAME.crt and NAME.key. The first certificate signs itself and all later ones.
func (a *authority) issue(dir, name string, template *x509.Certificate) error {
	key, err := writeKey(filepath.Join(dir, name+".key"))
	if err != nil {
		return err
	}
	if a.certificate == nil {
		a.certificate, a.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	if template == a.certificate {
		if a.certificate, err = x509.ParseCertificate(der); err != nil {
			return err
		}
	}
	return writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der)
}

func writeKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(file, "EC PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func (c *credentials) writeKubeconfig() error {
	ca, err := os.ReadFile(filepath.Join(c.dir, "ca.crt"))
	if err != nil {
		return err
	}
	named := func(key string, value any) []any {
		return []any{map[string]any{"name": "kubebed", key: value}}
	}
	return writeJSON(c.kubeconfig, map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "kubebed",
		"clusters": named("cluster", map[string]any{"server": c.server, "certificate-authority-data": ca}),
		"users":    named("user", map[string]any{"token": c.token}),
		"contexts": named("context", map[string]any{"cluster": "kubebed", "user": "kubebed"}),
	})
}

// describe writes what a user of the cluster needs to know, as a whole or not at all.
func (c *credentials) describe(file string) error {
	told := map[string]any{"server": c.server, "token": c.token, "pid": os.Getpid()}
	if err := writeJSON(file+".new", told); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func writeJSON(file string, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
