package statestorage

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/trainbridge/trainbridge/extensions/statestorage/internal/metadata"
)

// NewFactory returns the factory of the state_storage extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func createDefaultConfig() component.Config { return &Config{} }

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newStateStorage(cfg.(*Config), set.Logger)
}
