// Command imagecopy drives a registry with containers/image, the library behind Skopeo, Podman,
// Buildah and CRI-O. The tests use it as one more independent client of our registry.
//
//	imagecopy copy SOURCE TARGET    copy an image, keeping its digest
//	imagecopy inspect IMAGE         print digest and layers as JSON
//	imagecopy tags IMAGE            print the tags of the image's repository as JSON
//	imagecopy delete IMAGE          delete the image's manifest
//
// References are those of containers/image: docker://host/name:tag, dir:/folder. The registry's
// login comes from REGISTRY_USER and REGISTRY_PASSWORD; registries are asked over plain HTTP.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/containers/image/v5/copy"
	_ "github.com/containers/image/v5/directory"
	"github.com/containers/image/v5/docker"
	"github.com/containers/image/v5/manifest"
	"github.com/containers/image/v5/signature"
	"github.com/containers/image/v5/transports"
	"github.com/containers/image/v5/types"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	system := &types.SystemContext{
		DockerInsecureSkipTLSVerify: types.OptionalBoolTrue,
		DockerAuthConfig: &types.DockerAuthConfig{
			Username: os.Getenv("REGISTRY_USER"),
			Password: os.Getenv("REGISTRY_PASSWORD"),
		},
	}
	if len(args) == 3 && args[0] == "copy" {
		return copyImage(ctx, system, args[1], args[2])
	}
	if len(args) != 2 {
		return fmt.Errorf("usage: imagecopy copy SOURCE TARGET | inspect|tags|delete IMAGE")
	}
	reference, err := parse(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "inspect":
		return inspect(ctx, system, reference)
	case "tags":
		tags, err := docker.GetRepositoryTags(ctx, system, reference)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(tags)
	case "delete":
		return reference.DeleteImage(ctx, system)
	}
	return fmt.Errorf("unknown command %q", args[0])
}

func parse(text string) (types.ImageReference, error) {
	name, rest, found := strings.Cut(text, ":")
	transport := transports.Get(name)
	if !found || transport == nil {
		return nil, fmt.Errorf("%q names no image", text)
	}
	return transport.ParseReference(rest)
}

func copyImage(ctx context.Context, system *types.SystemContext, source, target string) error {
	from, err := parse(source)
	if err != nil {
		return err
	}
	to, err := parse(target)
	if err != nil {
		return err
	}
	anything := &signature.Policy{
		Default: []signature.PolicyRequirement{signature.NewPRInsecureAcceptAnything()},
	}
	policy, err := signature.NewPolicyContext(anything)
	if err != nil {
		return err
	}
	defer policy.Destroy()
	_, err = copy.Image(ctx, policy, to, from, &copy.Options{
		SourceCtx: system, DestinationCtx: system, PreserveDigests: true,
	})
	return err
}

func inspect(ctx context.Context, system *types.SystemContext, reference types.ImageReference) error {
	source, err := reference.NewImageSource(ctx, system)
	if err != nil {
		return err
	}
	defer source.Close()
	raw, kind, err := source.GetManifest(ctx, nil)
	if err != nil {
		return err
	}
	digest, err := manifest.Digest(raw)
	if err != nil {
		return err
	}
	parsed, err := manifest.FromBlob(raw, kind)
	if err != nil {
		return err
	}
	layers := []string{}
	for _, layer := range parsed.LayerInfos() {
		layers = append(layers, layer.Digest.String())
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"digest": digest.String(), "layers": layers,
	})
}
